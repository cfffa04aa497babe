"""Which pods are evicted and which are not: over limits that move, and under memory pressure."""

import signal
import time
from typing import Any

from gpufence import names
from gpufence.mode import Mode
from kube import PatchType, core, group
from simulator.nvml.faults import Fault
from simulator.nvml.layout import FaultAction
from tests.support.agent.node_site import (
    GPU,
    OVER,
    QUICK,
    WITHIN,
    Ground,
    NodeSite,
    events,
    fenced_pod,
    is_gone,
    place,
    pod,
    wait_until_gone,
    workload,
)
from tests.support.objects import annotated, capacity, node
from tests.support.observing import eventually, wait_until
from tests.support.rewriting import POLICY, gpu_node, rewritten
from webhook.rewrite.binding import exact_values

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


THEFT = "hold 13600Mi"
"""With contexts and what the driver keeps, this leaves some 1.2 GiB free: more than the floor."""

IDLE = "hold 100Mi"
LONG_GRACE = {"GPUFENCE_GRACE_SECONDS": "600"}


def test_a_budget_shields_no_theft(site: NodeSite, namespace: str) -> None:
    """
    A disruption budget that lets nobody go holds the thief for three refusals, and nothing that is
    said of it names its neighbour.
    """
    ground = site.ground(namespace)
    greedy = fenced_pod("greedy", THEFT)
    greedy["metadata"]["labels"] = {"app": "web"}
    _shield(ground)
    place(ground, fenced_pod("bystander", IDLE), greedy)
    settings = {"GPUFENCE_REFUSED_BACKOFF_SECONDS": "0.2"}
    with site.agent(**settings, **LONG_GRACE) as agent:
        wait_until_gone(ground, "greedy", agent)
        wait_until(lambda: events(ground, names.EVICTION_BLOCKED), agent.lines[-5:])
        wait_until(lambda: "greedy" in agent.get("/v1/why")[1], agent.lines[-5:])
        told = ground.admin.get(core("namespaces", namespace, "events"))["items"]
        about = [item for item in told if "greedy" in str(item)]
        recorded = agent.get("/v1/why")[1]

    assert about
    assert "bystander" not in f"{about} {recorded}"
    assert not is_gone(ground, "bystander")


def _shield(ground: Ground) -> None:
    """Make a disruption budget that lets nobody go, as its controller would keep it."""
    path = group("policy/v1", "namespaces", ground.namespace, "poddisruptionbudgets")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = ground.admin.post(path, {"metadata": {"name": "nobody"}, "spec": spec})
    said = {"observedGeneration": made["metadata"]["generation"], "disruptionsAllowed": 0}
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    ground.admin.patch(f"{path}/nobody/status", {"status": said | counts}, PatchType.MERGE)


def bound(site: NodeSite) -> dict[str, Any]:
    """Return a pod as the webhook leaves it that knew nothing of its node's cards."""
    told = pod("trainer", workload(WITHIN, "--context", "100Mi", resources=GPU))
    told, _ = rewritten(annotated(told, **{names.FRAMEWORK: "jax"}), Mode.EVICT)
    born = node(site.node.name)
    born["status"] = capacity(16)
    exact = exact_values(told, gpu_node(born), POLICY)
    return annotated(told, **exact, **{names.GPUSHARE_CARD_INDEX: "0"})


def test_a_pod_that_was_told_carefully_is_named(site: NodeSite, namespace: str) -> None:
    """A pod whose fractions are of the largest card there is has an Event where it runs."""
    ground = site.ground(namespace)
    place(ground, bound(site))
    with site.agent() as agent:
        agent.wait_for_outcome("trainer", "within")
        wait_until(lambda: events(ground, names.CAP_TOO_LOW), str(agent.lines[-5:]))
        (told,) = events(ground, names.CAP_TOO_LOW)

    assert "trainer" == told["involvedObject"]["name"]
    assert "fractions are for a card of 294912 MiB" in told["message"]


HOLDS = "hold 1Gi"


def test_its_namespace_says_what_becomes_of_it(site: NodeSite, namespace: str) -> None:
    """A pod that asks for nothing is reported until its namespace evicts such pods."""
    ground = site.ground(namespace)
    place(ground, pod("uninvited", workload(HOLDS, "--context", "100Mi")))
    with site.agent() as agent:
        assert eventually(lambda: bool(events(ground, names.UNDECLARED)))
        assert not is_gone(ground, "uninvited")
        words = {names.UNDECLARED_USE: "evict", names.MAX_MEMORY: "512Mi"}
        site.admin.patch(
            core("namespaces", namespace), {"metadata": {"annotations": words}}, PatchType.MERGE
        )
        wait_until_gone(ground, "uninvited", agent)


OVER_MIB = 4096


class Ceiling:
    """A namespace's `max-memory`, which is lower by 1 MiB at each look."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.mebibytes = OVER_MIB

    def lower(self) -> None:
        said = {names.MAX_MEMORY: f"{self.mebibytes}Mi"}
        body = {"metadata": {"annotations": said}}
        path = core("namespaces", self._ground.namespace)
        self._ground.admin.patch(path, body, PatchType.MERGE)
        self.mebibytes -= 1


def test_a_limit_that_falls_at_each_look_spares_nobody(site: NodeSite, namespace: str) -> None:
    """A pod that is over its limit goes in time, however often that limit is lowered meanwhile."""
    ground = site.ground(namespace)
    greedy = pod("greedy", workload("hold 5Gi", "--context", "100Mi"))
    greedy["metadata"]["annotations"] = {names.INJECTED: "nothing", names.MEMORY: "6Gi"}
    ceiling = Ceiling(ground)
    ceiling.lower()
    place(ground, fenced_pod("good", WITHIN), greedy)

    def goes() -> bool:
        ceiling.lower()
        return is_gone(ground, "greedy")

    with site.agent() as agent:
        wait_until(goes, f"{agent.snapshot()} {agent.lines[-5:]}")

    assert OVER_MIB - 10 > ceiling.mebibytes
    assert not is_gone(ground, "good")
