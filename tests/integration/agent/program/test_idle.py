"""
Who waits on a card and who works there, as people and programs can see it on a real API server.
"""

from typing import Any

from gpufence import names
from simulator.nvml.faults import Fault, NvmlCode
from tests.support.agent.node_site import WITHIN, AgentProcess, Ground, NodeSite, fenced_pod, place
from tests.support.observing import wait_until

SOON = {"GPUFENCE_ACTIVITY_SECONDS": "0.5", "GPUFENCE_IDLE_SECONDS": "2"}
BUSY = f"{WITHIN}; busy 40%"
OTHERS = ("Ready", "PodScheduled")


def condition(ground: Ground, name: str) -> dict[str, Any]:
    found = ground.get(name) or {}
    every = found.get("status", {}).get("conditions", [])
    return next((item for item in every if item["type"] == names.GPU_IDLE), {})


def wait_for_status(ground: Ground, name: str, status: str, agent: AgentProcess) -> dict[str, Any]:
    wait_until(
        lambda: condition(ground, name).get("status") == status,
        f"{name} is not {status}: {condition(ground, name)} {agent.snapshot()} {agent.lines[-5:]}",
    )
    return condition(ground, name)


def states(agent: AgentProcess) -> dict[str, str]:
    return {
        pod.name: use.activity.state
        for pod in agent.snapshot().pods
        for use in pod.uses
        if use.activity is not None
    }


def idle_metrics(agent: AgentProcess, figure: str = "idle_seconds") -> dict[str, float]:
    """Return a figure by the name of the pod."""
    start = f"gpufence_pod_gpu_{figure}{{"
    return {
        line.split('pod="')[1].split('"')[0]: value
        for line, value in agent.metrics().items()
        if line.startswith(start)
    }


def test_who_does_nothing_says_so_until_it_works(site: NodeSite, namespace: str) -> None:
    """
    A pod that does nothing says so to whoever waits for it, its busy neighbour that it works, and
    one that begins to work takes it back.
    """
    ground = site.ground(namespace)
    turns = "; after 7s busy 30%; after 3s busy 0" * 5  # however late the agent begins to look
    place(ground, fenced_pod("waits", WITHIN), fenced_pod("works", BUSY))
    place(ground, fenced_pod("begins", f"{WITHIN}{turns}", card=1))
    with site.agent(**SOON) as agent:
        wait_for_status(ground, "begins", "True", agent)
        waited = site.plane.kubectl(
            *("wait", f"--for=condition={names.GPU_IDLE}", "pod/waits"),
            *("-n", namespace, "--timeout=60s"),
        ).stdout
        busy = wait_for_status(ground, "works", "False", agent)
        idle = condition(ground, "waits")
        known = states(agent)
        seconds, worked = idle_metrics(agent), idle_metrics(agent, "busy_seconds_total")
        conditions = (ground.get("waits") or {})["status"]["conditions"]
        wait_for_status(ground, "begins", "False", agent)
        again = wait_for_status(ground, "begins", "True", agent)

    assert "condition met" in waited
    assert ("NoKernels", "Busy", "NoKernels") == (idle["reason"], busy["reason"], again["reason"])
    assert idle["lastTransitionTime"]
    assert ("idle", "busy") == (known["waits"], known["works"])
    assert 2.0 <= seconds["waits"]
    assert 0.0 == seconds["works"]
    assert 0.0 == worked["waits"] < worked["works"]
    assert set(OTHERS) <= {item["type"] for item in conditions}


def test_what_nobody_can_tell_is_unknown(site: NodeSite, namespace: str) -> None:
    """
    Where the driver does not tell who works, pods say that nobody knows, and metrics say nothing;
    what an agent has said is taken back until the next one knows it itself.
    """
    ground = site.ground(namespace)
    place(ground, fenced_pod("waits", WITHIN))
    with site.agent(**SOON) as agent:
        wait_for_status(ground, "waits", "True", agent)
        fault = site.node.state.faults.add(
            Fault.code(NvmlCode.NOT_SUPPORTED, "nvmlDeviceGetProcessUtilization")
        )
        try:
            told = wait_for_status(ground, "waits", "Unknown", agent)
            known, seconds = states(agent), idle_metrics(agent)
        finally:
            site.node.state.faults.remove(fault)
        wait_for_status(ground, "waits", "True", agent)
    with site.agent(**SOON | {"GPUFENCE_IDLE_SECONDS": "4"}) as agent:
        wait_for_status(ground, "waits", "Unknown", agent)
        wait_for_status(ground, "waits", "True", agent)

    assert "NotMeasurable" == told["reason"]
    assert "nvmlDeviceGetProcessUtilization: code 3" in told["message"]
    assert {"waits": "unknown"} == known
    assert {} == seconds
