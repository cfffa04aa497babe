"""Limits that are told late, move, or were never asked for, on a running node."""

from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from kube import PatchType, core
from tests.support.agent.node_site import (
    GPU,
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
from tests.support.objects import T4_MIB, annotated, capacity, gpu_labels, node
from tests.support.observing import eventually, wait_until
from tests.support.rewriting import POLICY, gpu_node, rewritten
from webhook.rewrite.binding import exact_values


def bound(site: NodeSite, labels: dict[str, str]) -> dict[str, Any]:
    """Return a pod as the webhook leaves it that knew its node by these labels alone."""
    told = pod("trainer", workload(WITHIN, "--context", "100Mi", resources=GPU))
    told, _ = rewritten(annotated(told, **{names.FRAMEWORK: "jax"}), Mode.EVICT)
    born = node(site.node.name)
    born["metadata"]["labels"] |= labels
    born["status"] = capacity(16)
    exact = exact_values(told, gpu_node(born), POLICY)
    return annotated(told, **exact, **{names.GPUSHARE_CARD_INDEX: "0"})


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
def test_a_pod_that_was_told_carefully_is_named(
    site: NodeSite, namespace: str, *, known: bool
) -> None:
    """A pod whose fractions are of the largest card there is has an Event where it runs, alone."""
    labels = gpu_labels("Tesla-T4", T4_MIB, (7, 5)) if known else {}
    ground = site.ground(namespace)
    place(ground, bound(site, labels))
    with site.agent() as agent:
        agent.wait_for_outcome("trainer", "within")
        named = not known and eventually(lambda: bool(events(ground, names.CAP_TOO_LOW)))
        told = events(ground, names.CAP_TOO_LOW)

    assert named is not known
    assert ([] if known else ["trainer"]) == [each["involvedObject"]["name"] for each in told]
    assert known or "fractions are for a card of 294912 MiB" in told[0]["message"]


HOLDS = "hold 1Gi"


@pytest.mark.parametrize(
    ("ceiling", "goes"), [(None, True), ("512Mi", True), ("2Gi", False)], ids=str
)
def test_its_namespace_says_what_becomes_of_it(
    site: NodeSite, namespace: str, ceiling: str | None, *, goes: bool
) -> None:
    """It is reported until its namespace evicts such pods, and then may hold the ceiling."""
    ground = site.ground(namespace)
    place(ground, pod("uninvited", workload(HOLDS, "--context", "100Mi")))
    with site.agent() as agent:
        assert eventually(lambda: bool(events(ground, names.UNDECLARED)))
        assert not is_gone(ground, "uninvited")
        words = {names.UNDECLARED_USE: "evict", names.MAX_MEMORY: ceiling}
        site.admin.patch(
            core("namespaces", namespace), {"metadata": {"annotations": words}}, PatchType.MERGE
        )
        if goes:
            wait_until_gone(ground, "uninvited", agent)
        else:
            known = 'gpufence_fenced_pods{outcome="within"}'
            assert eventually(lambda: agent.metrics().get(known) == 1)
            assert not is_gone(ground, "uninvited")


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
