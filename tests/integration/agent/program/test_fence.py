"""Who is evicted and who is not, and what people can read about it."""

import signal
import time

from gpufence import names
from simulator.controlplane import ControlPlane
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from tests.support import objects
from tests.support.agent.node_site import (
    OVER,
    QUICK,
    WITHIN,
    Ground,
    NodeSite,
    events,
    fenced_pod,
    is_gone,
    place,
    wait_until_gone,
)
from tests.support.observing import eventually, wait_until

END_SECONDS = 30.0
LONG_GRACE_SECONDS = 600
_KILLED = 'gpufence_evictions_total{action="kill",result="accepted"}'
HOLD_SECONDS = float(QUICK["GPUFENCE_HOLD_SECONDS"])
JITTER_SECONDS = 0.05  # a sample that comes so much early counts as a whole interval
LATE_SECONDS = 30.0
"""The budget is in tests/bench; here only that it does not wait for anything else."""


def test_a_pod_over_its_limit_is_evicted_and_its_neighbour_is_not(
    site: NodeSite, namespace: str
) -> None:
    """
    The violator goes once its time is up, its neighbour stays, and everything we show tells why.
    """
    ground = site.ground(namespace)
    place(ground, fenced_pod("good", WITHIN))
    with site.agent() as agent:
        place(ground, fenced_pod("greedy", OVER))
        wait_until_gone(ground, "greedy", agent)
        assert eventually(lambda: bool(events(ground, names.EVICTED)))
        (told,) = events(ground, names.EVICTED)
        shown = site.plane.kubectl("get", "events", "-n", namespace).stdout
        metrics = agent.metrics()
        acted = agent.wait_for("acted")

    assert not is_gone(ground, "good")
    assert names.EVICTED in shown
    assert "3172 of 2048 MiB" in told["message"]
    assert 1 == metrics['gpufence_evictions_total{action="evict",result="accepted"}']
    assert 0 == metrics["gpufence_agent_ticks_failed_total"]
    assert HOLD_SECONDS - JITTER_SECONDS <= acted["over_seconds"]
    assert acted["over_seconds"] + acted["seconds"] < HOLD_SECONDS + LATE_SECONDS


def test_a_pod_whose_first_thread_has_ended_is_evicted(site: NodeSite, namespace: str) -> None:
    """A process that goes on in other threads than its first is its pod's, and the pod goes."""
    ground = site.ground(namespace)
    place(ground, fenced_pod("good", WITHIN), fenced_pod("headless", f"{OVER}; leave"))
    ground.wait_for_log("headless", "leave")
    with site.agent() as agent:
        wait_until_gone(ground, "headless", agent)
        nobodys = agent.snapshot().nobody

    assert () == tuple(nobodys)
    assert not is_gone(ground, "good")


def test_a_pod_whose_words_contradict_each_other_is_evicted(site: NodeSite, namespace: str) -> None:
    """
    An amount in another system's words beside its own takes no pod its limit: the smaller counts.
    """
    ground = site.ground(namespace)
    with site.agent() as agent:
        place(ground, objects.annotated(fenced_pod("muddled", OVER), **{names.KAI_FRACTION: "0.5"}))
        wait_until_gone(ground, "muddled", agent)
        assert eventually(lambda: bool(events(ground, names.EVICTED)))
        (told,) = events(ground, names.EVICTED)

    assert "2048 MiB" in told["message"]


def test_the_last_resort_ends_a_pod_that_does_not_end(site: NodeSite, namespace: str) -> None:
    """
    A pod that was evicted, ignores SIGTERM and keeps its memory is killed where that is allowed,
    long before its kubelet would; its neighbour is not touched.
    """
    ground = site.ground(namespace)
    deaf = fenced_pod("deaf", OVER)
    deaf["spec"]["containers"][0]["args"] += ["--on-term", "ignore"]
    deaf["spec"]["terminationGracePeriodSeconds"] = LONG_GRACE_SECONDS
    place(ground, fenced_pod("good", WITHIN), deaf)
    allowed = {
        "GPUFENCE_LAST_RESORT_KILL": "true",
        "GPUFENCE_TERMINATION_SECONDS": "1",
        "GPUFENCE_EVICTION_GRACE_SECONDS": str(LONG_GRACE_SECONDS),
    }
    with site.agent(**allowed) as agent:
        wait_until_gone(ground, "deaf", agent)
        ended = eventually(lambda: ground.get("deaf") is None)
        wait_until(lambda: events(ground, names.TERMINATION_STUCK), "nothing says so")
        told = events(ground, names.TERMINATION_STUCK)
        counted = eventually(lambda: agent.metrics()[_KILLED] == 1)

    assert ended
    assert counted
    assert ["deaf"] == [item["involvedObject"]["name"] for item in told]
    assert not is_gone(ground, "good")
    assert site.node.pids(namespace, "good")


def test_below_evict_nobody_is_evicted(
    site: NodeSite, control_plane: ControlPlane, namespace: str
) -> None:
    """In cap and in observe a violator is told that it would be evicted, and stays."""
    with control_plane.fresh_namespace() as other, site.agent() as agent:
        capped = site.ground(namespace, "cap")
        observed = site.ground(other, "observe")
        for card, ground in enumerate((capped, observed)):
            place(ground, fenced_pod("greedy", OVER, card))
        assert eventually(lambda: _was_told(capped) and _was_told(observed))
        agent.wait_for_outcome("greedy", "would evict")

        assert not is_gone(capped, "greedy")
        assert not is_gone(observed, "greedy")
        assert 2 == agent.metrics()['gpufence_fenced_pods{outcome="would_evict"}']


def test_the_kill_switch_holds_everybody_back(site: NodeSite, namespace: str) -> None:
    """Under a lower highest mode a violator stays, and goes once it is raised again."""
    site.set_policy("cap")
    try:
        ground = site.ground(namespace)
        with site.agent() as agent:
            place(ground, fenced_pod("greedy", OVER))
            agent.wait_for_outcome("greedy", "would evict")
            held_back = not is_gone(ground, "greedy")
            site.set_policy("evict")
            wait_until_gone(ground, "greedy", agent)
    finally:
        site.set_policy("evict")

    assert held_back


def test_sigterm_ends_the_agent_at_once(site: NodeSite) -> None:
    """The agent ends within a second or two of SIGTERM, with exit code 0."""
    with site.agent() as agent:
        began = time.monotonic()
        agent.process.send_signal(signal.SIGTERM)
        code = agent.process.wait(60)
        seconds = time.monotonic() - began

    assert 0 == code
    assert seconds < END_SECONDS


def test_sigterm_does_not_wait_for_a_driver_that_hangs(site: NodeSite) -> None:
    """A look that would take for a minute is left behind."""
    site.node.state.faults.add(Fault(FaultAction.HANG, "nvmlDeviceGetMemoryInfo"))
    try:
        with site.agent(GPUFENCE_NVML_DEADLINE_SECONDS="60") as agent:
            began = time.monotonic()
            agent.process.send_signal(signal.SIGTERM)
            code = agent.process.wait(60)
            seconds = time.monotonic() - began
    finally:
        site.node.state.faults.clear()

    assert 0 == code
    assert seconds < END_SECONDS


def _was_told(ground: Ground) -> bool:
    return bool(events(ground, names.WOULD_EVICT))
