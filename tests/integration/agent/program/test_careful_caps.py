"""Pods that were bound before anything told the size of their node's cards."""

from typing import Any

import pytest

from gpufence import names
from gpufence.mode import Mode
from tests.support.agent.node_site import GPU, WITHIN, NodeSite, events, place
from tests.support.node_ground import pod, workload
from tests.support.objects import T4_MIB, annotated, capacity, gpu_labels, node
from tests.support.observing import eventually
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
    assert known or "fractions are of a card of 294912 MiB" in told[0]["message"]
