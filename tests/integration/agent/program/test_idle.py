"""What pods say of themselves on a real API server, and what a person of one namespace sees."""

import json
from pathlib import Path
from typing import Any

from gpufence import names
from kube import core
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


TENANT = "tenant"


def viewer_of(site: NodeSite, namespace: str) -> Path:
    """Make an account that may view this namespace; a controller would fill `view` itself."""
    site.admin.post(
        core("namespaces", namespace, "serviceaccounts"), {"metadata": {"name": TENANT}}
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    binding = {
        "metadata": {"name": "view"},
        "roleRef": {**role, "name": "system:aggregate-to-view"},
        "subjects": [{"kind": "ServiceAccount", "name": TENANT, "namespace": namespace}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    site.admin.post(path, binding)
    token = site.plane.service_account_token(namespace, TENANT)
    return site.plane.token_kubeconfig(f"{TENANT}-{namespace}", token)


def says(ground: Ground, name: str) -> str:
    conditions = ground.status(name).get("conditions", [])
    said = [item["message"] for item in conditions if item["type"] == names.GPU_MEMORY]
    return "".join(said)


def test_a_person_who_may_view_one_namespace_sees_its_use_and_no_others(
    site: NodeSite, namespace: str
) -> None:
    """`top` and `explain` read it from the pods, which their owner cannot write it into."""
    with site.plane.fresh_namespace("neighbours") as others:
        mine, theirs = site.ground(namespace), site.ground(others)
        config = viewer_of(site, namespace)
        with site.agent():
            place(mine, fenced_pod("mine", WITHIN))
            place(theirs, fenced_pod("theirs", WITHIN))
            wait_until(lambda: "1124 of 2048" in says(mine, "mine"), says(mine, "mine"))
            wait_until(lambda: "1124 of 2048" in says(theirs, "theirs"), says(theirs, "theirs"))
        table = site.plugin("top", "-n", namespace, kubeconfig=config)
        rows = site.plugin("top", "-n", namespace, "-o", "json", kubeconfig=config)
        told = site.plugin("explain", "-n", namespace, "mine", kubeconfig=config)
        refused = site.plugin("top", "-n", others, kubeconfig=config)
        forged = site.plane.kubectl(
            *("auth", "can-i", "patch", "pods", "--subresource=status", "-n", namespace),
            check=False,
            environment={"KUBECONFIG": str(config)},
        )
        (row,) = json.loads(rows.stdout)["pods"]

        assert ("mine", "1124Mi", "WithinLimit") == (
            row["name"],
            row["used"],
            row["said"]["reason"],
        )
        assert row["said"]["at"]
        assert "~1124Mi" in table.stdout
        assert "~ is what pods say of themselves" in table.stderr
        assert "card 0: about 1124Mi of 2048Mi (55%)" in told.stdout
        assert "theirs" not in table.stdout + rows.stdout + told.stdout
        assert (1, "no") == (refused.returncode, forged.stdout.strip())
        site.clear()
