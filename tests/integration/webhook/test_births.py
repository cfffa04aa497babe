"""Pods that a real API server binds to nodes born after them, where no agent has looked yet."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

import pytest

from gpufence import names
from gpufence.quantity import GIB, MIB
from tests.support import objects
from tests.support.builders import CARDS, labels_of
from tests.support.observing import wait_until
from tests.support.webhook_site import Webhook, WebhookSite, annotations_of, environment

A100 = next(each for each in CARDS if each.google == "nvidia-a100-80gb")
TOLD = ("karpenter", "eks", "gke", "product")
CAREFUL = 'gpufence_webhook_requests_total{hook="bindings",result="careful"'


@pytest.fixture(scope="module", autouse=True)
def known(site: WebhookSite, webhook: Webhook) -> Iterator[None]:
    """Lend the fleet that is known when pods are made: a T4."""
    labels = objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))
    with site.known_nodes(webhook, ("births-t4", 15, labels)):
        yield


def landed(
    site: WebhookSite, webhook: Webhook, labels: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a pod of 3 GiB reads and says after it went to a new node with these labels."""
    fleet = webhook.metric("gpufence_webhook_gpu_nodes")
    with site.namespace("evict") as name:
        created = site.create(name, objects.gpu_pod("trainer"))
        with site.gpu_node("births-late", 79, labels):
            site.bind(name, created, "births-late")
            found = site.pod(name, "trainer")
    wait_until(lambda: webhook.metric("gpufence_webhook_gpu_nodes") == fleet)
    return environment(found), annotations_of(found)


@pytest.mark.parametrize("kind", TOLD)
def test_a_node_tells_its_cards_at_birth(site: WebhookSite, webhook: Webhook, kind: str) -> None:
    """What its cloud says of a node's cards is enough to tell a pod its share of them."""
    read, said = landed(site, webhook, labels_of(kind, A100))
    taken = Fraction(read[names.XLA_FRACTION]) * A100.shown * MIB

    assert GIB < taken <= Fraction(21, 10) * GIB
    assert "births-late" == said[names.NODE]


def test_a_node_that_tells_nothing_gets_no_fraction_of_another_card(
    site: WebhookSite, webhook: Webhook
) -> None:
    """Where nothing tells a card's size, no fraction is above the limit on any card there is."""
    before = webhook.metric(CAREFUL)
    read, said = landed(site, webhook, {})

    assert Fraction(read[names.XLA_FRACTION]) * 288 * GIB <= 3 * GIB
    assert read[names.CUPY_LIMIT] == str(3 * GIB * 7 // 10)
    assert names.NODE not in said
    assert "births-late does not state its cards" in said[names.WARNINGS]
    assert before + 1 == webhook.metric(CAREFUL)
