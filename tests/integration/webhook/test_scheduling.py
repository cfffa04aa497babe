"""The whole way of a pod through a real scheduler, also to nodes that were born after it."""

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import GIB, MIB
from kube import core
from tests.support import objects
from tests.support.builders import CARDS, labels_of
from tests.support.observing import wait_until
from tests.support.webhook_site import Webhook, WebhookSite, annotations_of, environment

T4, H100 = "scheduling-t4", "scheduling-h100"
OURS = {"example.com/pool": "scheduling"}
EXACT = {T4: "0.140000", H100: "0.026366"}


@pytest.fixture(scope="module", autouse=True)
def nodes(full_site: WebhookSite, full_webhook: Webhook) -> Iterator[None]:
    """Lend two nodes with very different cards."""
    cards = {
        T4: (15, objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))),
        H100: (79, objects.gpu_labels("H100", objects.H100_MIB, (9, 0))),
    }
    lent = [(name, units, {**labels, **OURS}) for name, (units, labels) in cards.items()]
    with full_site.known_nodes(full_webhook, *lent):
        yield


def bound_pods(site: WebhookSite, namespace: str) -> list[dict[str, Any]]:
    pods = site.admin.list(core("namespaces", namespace, "pods")).items
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def test_the_schedulers_choice_makes_the_values_exact(full_site: WebhookSite) -> None:
    """The same pod gets other values on a T4 than on an H100, and before that the smaller ones."""
    with full_site.namespace("cap") as name:
        created = {
            node: full_site.create(
                name, objects.gpu_pod(node, nodeSelector={"kubernetes.io/hostname": node})
            )
            for node in EXACT
        }
        anywhere = full_site.create(
            name, objects.gpu_pod("anywhere", schedulerName="nobody", nodeSelector=OURS)
        )
        wait_until(lambda: len(bound_pods(full_site, name)) == len(EXACT))
        found = {node: full_site.pod(name, node) for node in EXACT}

    assert all(names.NODE not in annotations_of(pod) for pod in created.values())
    assert EXACT[H100] == environment(anywhere)[names.XLA_FRACTION]
    assert EXACT == {node: environment(pod)[names.XLA_FRACTION] for node, pod in found.items()}
    assert {node: node for node in EXACT} == {
        node: annotations_of(pod)[names.NODE] for node, pod in found.items()
    }


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_what_controllers_make_is_fenced_too(full_site: WebhookSite, kind: str) -> None:
    """The pods of a Deployment and of a Job are rewritten and exact, their templates untouched."""
    template = {
        "metadata": {"labels": {"app": "trainer"}},
        "spec": objects.gpu_pod("x", nodeSelector=OURS)["spec"]
        | ({"restartPolicy": "Never"} if kind == "Job" else {}),
    }
    specs: dict[str, tuple[str, dict[str, Any]]] = {
        "Deployment": (
            "apps/v1",
            {"replicas": 2, "selector": {"matchLabels": {"app": "trainer"}}, "template": template},
        ),
        "Job": ("batch/v1", {"completions": 2, "parallelism": 2, "template": template}),
    }
    version, spec = specs[kind]
    item = {"apiVersion": version, "kind": kind, "metadata": {"name": "trainer"}, "spec": spec}
    with full_site.namespace("evict") as name:
        full_site.plane.kubectl("apply", "-n", name, "-f", "-", stdin=json.dumps(item))
        wait_until(lambda: len(bound_pods(full_site, name)) == spec.get("replicas", 2))
        pods = bound_pods(full_site, name)
        full_site.plane.kubectl("delete", "-n", name, kind.lower(), "trainer", "--wait=false")

    for pod in pods:
        node = pod["spec"]["nodeName"]
        assert node == annotations_of(pod)[names.NODE]
        assert EXACT[node] == environment(pod)[names.XLA_FRACTION]
    assert "env" not in template["spec"]["containers"][0]


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
