"""The whole way of a pod through a real scheduler and real controllers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gpufence import names
from kube import core
from tests.support import objects
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
