"""What people meet when they label a namespace and create pods in it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gpufence import names
from kube import ForbiddenError, core
from kubectl_gpufence.reader import ClusterReader
from kubectl_gpufence.verbs.doctor.trial_pod import try_pod
from tests.support import objects
from tests.support.observing import wait_until
from tests.support.webhook_site import Webhook, WebhookSite, annotations_of, environment

pytestmark = pytest.mark.usefixtures("webhook")  # whichever test comes first
T4 = objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))
T4_NODE = "rewriting-t4"
HERE = {"kubernetes.io/hostname": T4_NODE}
GIB3_OF_T4 = "0.140000"
FULL = {"notes": "x" * 252 * 1024}
FORGED = {names.PLAN: "{}", "ALIYUN_COM_GPU_MEM_IDX": "0"}


@pytest.fixture(scope="module")
def node(site: WebhookSite, webhook: Webhook) -> Iterator[str]:
    """Lend a T4 node that the webhook knows."""
    with site.known_nodes(webhook, (T4_NODE, 15, T4)):
        yield T4_NODE


def rewritten(webhook: Webhook) -> float:
    return webhook.metric('gpufence_webhook_requests_total{hook="cap",result="rewritten"')


@pytest.mark.usefixtures("node")
def test_a_gpu_pod_in_a_fenced_namespace_is_rewritten(site: WebhookSite, webhook: Webhook) -> None:
    """Three GiB of a T4 come out as the share that JAX and PyTorch may use."""
    with site.namespace("cap") as name:
        site.create(name, objects.gpu_pod("trainer", nodeSelector=HERE))
        found = site.pod(name, "trainer")

    assert GIB3_OF_T4 == environment(found)[names.XLA_FRACTION]
    assert "yes" == annotations_of(found)[names.INJECTED]
    assert 0 < rewritten(webhook)


@pytest.mark.usefixtures("node")
def test_kubectl_shows_what_was_done_and_why(site: WebhookSite) -> None:
    """`kubectl get pod -o yaml` explains itself: limit, summary and the whole plan."""
    with site.namespace("cap") as name:
        site.create(name, objects.gpu_pod("trainer", nodeSelector=HERE))
        text = site.plane.kubectl("get", "pod", "trainer", "-n", name, "-o", "yaml").stdout
    said = yaml.safe_load(text)["metadata"]["annotations"]

    assert "3072Mi" == json.loads(said[names.PLAN])["limit"]
    assert said[names.SUMMARY]
    assert "\n" not in said[names.SUMMARY]


@pytest.mark.parametrize(
    ("mode", "item"),
    [
        (None, objects.gpu_pod("trainer", nodeSelector=HERE)),
        (None, objects.annotated(objects.pod("marked"), gpufence_memory="1Gi")),
        ("cap", objects.pod("web")),
        ("evict", objects.pod("web", {"cpu": "1", "example.com/fpga": "1"})),
    ],
    ids=["no mode", "no mode but an annotation", "no gpu", "another device"],
)
def test_other_pods_never_reach_the_webhook(
    site: WebhookSite, webhook: Webhook, mode: str | None, item: dict[str, Any]
) -> None:
    """Pods of unlabelled namespaces and pods without a GPU are not even asked about."""
    with site.namespace(mode) as name:
        before = webhook.calls()
        created = site.create(name, item)
        after = webhook.calls()

    assert before == after
    assert "env" not in created["spec"]["containers"][0]


def test_system_namespaces_are_left_alone(site: WebhookSite, webhook: Webhook) -> None:
    """Even a label on our own namespace does not fence it."""
    path = core("namespaces", names.SYSTEM_NAMESPACE)
    site.plane.kubectl("label", "namespace", names.SYSTEM_NAMESPACE, f"{names.MODE}=evict")
    try:
        wait_until(lambda: names.MODE in site.admin.get(path)["metadata"]["labels"])
        before = webhook.calls()
        site.create(names.SYSTEM_NAMESPACE, objects.gpu_pod("own"), dry_run=True)

        assert before == webhook.calls()
    finally:
        site.plane.kubectl("label", "namespace", names.SYSTEM_NAMESPACE, f"{names.MODE}-")


@pytest.mark.usefixtures("node")
def test_a_dry_run_shows_the_same(site: WebhookSite) -> None:
    """`--dry-run=server` shows the pod as it would become."""
    with site.namespace("cap") as name:
        text = site.plane.kubectl(
            *("create", "-n", name, "-f", "-", "--dry-run=server", "-o", "json"),
            stdin=json.dumps(objects.gpu_pod("trainer", nodeSelector=HERE)),
        ).stdout
        real = site.create(name, objects.gpu_pod("trainer", nodeSelector=HERE))
    tried = json.loads(text)

    assert real["spec"]["containers"] == tried["spec"]["containers"]
    assert annotations_of(real) == annotations_of(tried)


@pytest.mark.usefixtures("node")
def test_observe_changes_nothing_a_container_can_see(site: WebhookSite) -> None:
    """The plan is there, the containers are as their author wrote them."""
    with site.namespace("observe") as name:
        found = site.create(name, objects.gpu_pod("trainer", nodeSelector=HERE))

    assert "env" not in found["spec"]["containers"][0]
    assert "observe" == json.loads(annotations_of(found)[names.PLAN])["mode"]


def test_what_cannot_be_read_is_refused_in_evict(site: WebhookSite, webhook: Webhook) -> None:
    """The creator learns field, value and remedy in one message."""
    item = objects.annotated(objects.gpu_pod("trainer", nodeSelector=HERE), gpufence_memory="lots")
    with site.namespace("evict") as name, pytest.raises(ForbiddenError) as caught:
        site.create(name, item)

    assert "evict.pods.gpufence.io" in str(caught.value)
    assert 'gpufence.io/memory]: "lots" is not a Kubernetes quantity; write' in str(caught.value)
    assert 0 < webhook.metric('gpufence_webhook_requests_total{hook="evict",result="refused"')


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({names.KAI_FRACTION: "0.5"}, "two ways to declare GPU memory"),
        ({**FULL, **FORGED}, "leave no room"),
    ],
    ids=["two systems", "no room"],
)
def test_nobody_talks_himself_out_of_his_limit(
    site: WebhookSite, annotations: dict[str, str], said: str
) -> None:
    """In evict a pod is refused whose own words make its limit unreadable, or leave it no room."""
    item = objects.annotated(objects.gpu_pod("shedder"), **annotations)
    with site.namespace("evict") as name, pytest.raises(ForbiddenError) as caught:
        site.create(name, item)

    assert said in str(caught.value)


def test_the_same_is_a_warning_in_cap(site: WebhookSite) -> None:
    """One rung lower the pod is made, and kubectl prints why that may not be wanted."""
    item = objects.annotated(objects.gpu_pod("trainer", nodeSelector=HERE), gpufence_memory="lots")
    with site.namespace("cap") as name:
        done = site.plane.kubectl("create", "-n", name, "-f", "-", stdin=json.dumps(item))

    assert "Warning: " in done.stderr
    assert "gpufence.io/memory" in done.stderr


@pytest.mark.usefixtures("node")
def test_the_words_of_a_namespace_count_for_its_pods(site: WebhookSite, webhook: Webhook) -> None:
    """A default on the namespace reaches a pod that is created right after it."""
    words = {"gpufence_memory": "2Gi"}
    before = webhook.metric("gpufence_webhook_namespaces")
    with site.namespace("cap", **words) as name:
        first = site.create(name, objects.gpu_pod("first"))
        wait_until(lambda: webhook.metric("gpufence_webhook_namespaces") >= before)
        second = site.create(name, objects.gpu_pod("second"))

    assert "2048Mi" == json.loads(annotations_of(first)[names.PLAN])["limit"]
    assert "2048Mi" == json.loads(annotations_of(second)[names.PLAN])["limit"]


def test_a_pod_with_a_node_is_exact_when_it_is_made(site: WebhookSite, node: str) -> None:
    """One that is pinned by nodeName never binds, so its values are final at once."""
    with site.namespace("cap") as name:
        found = site.create(name, objects.gpu_pod("pinned", nodeName=node))

    assert node == annotations_of(found)[names.NODE]
    assert GIB3_OF_T4 == environment(found)[names.XLA_FRACTION]


def test_a_forged_plan_is_dropped(site: WebhookSite) -> None:
    """What only gpufence writes cannot be brought along."""
    item = objects.annotated(objects.gpu_pod("forger"), **FORGED)
    with site.namespace("cap") as name:
        found = annotations_of(site.create(name, item))

    assert 1 == json.loads(found[names.PLAN])["v"]
    assert "ALIYUN_COM_GPU_MEM_IDX" not in found


def test_forged_records_are_dropped_where_there_is_no_room(site: WebhookSite) -> None:
    """What only gpufence and schedulers write cannot be brought along on a full pod, either."""
    item = objects.annotated(objects.gpu_pod("forger"), **FULL, **FORGED)
    with site.namespace("cap") as name:
        found = annotations_of(site.create(name, item))

    assert FULL == found


def test_a_binding_makes_the_values_exact(site: WebhookSite, webhook: Webhook, node: str) -> None:
    """The write that sets the node brings the values for its card, to each container its own."""
    asked = objects.gpu_pod("trainer", nodeSelector=HERE)
    asked["spec"]["containers"].append({**asked["spec"]["containers"][0], "name": "second"})
    exact = 'gpufence_webhook_requests_total{hook="bindings",result="exact"'
    before = webhook.metric(exact)
    with site.namespace("cap") as name:
        created = site.create(name, asked)
        site.bind(name, created, node)
        found = site.pod(name, "trainer")

    second = f"{names.ENV_PREFIX}{names.XLA_FRACTION}.1"
    assert names.NODE not in annotations_of(created)
    assert node == annotations_of(found)[names.NODE] == found["spec"]["nodeName"]
    assert GIB3_OF_T4 == environment(found)[names.XLA_FRACTION] == annotations_of(found)[second]
    assert before + 1 == webhook.metric(exact)


def test_a_binding_brings_nothing_that_was_decided(site: WebhookSite, node: str) -> None:
    """A scheduler that copies a pod's annotations, or forges some, changes none of them."""
    slot = f"{names.ENV_PREFIX}{names.XLA_FRACTION}"
    forged = {names.MEMORY: "80Gi", names.NODE: "elsewhere", slot: "1", "own": "x"}
    with site.namespace("cap") as name:
        item = objects.annotated(objects.gpu_pod("trainer", nodeSelector=HERE))
        created = site.create(name, objects.annotated(item, gpufence_memory="2Gi"))
        site.bind(name, created, node, forged)
        found = annotations_of(site.pod(name, "trainer"))

    assert ("2Gi", node, "x") == (found[names.MEMORY], found[names.NODE], found["own"])
    assert "1" != found[slot]


def test_a_binding_of_another_pod_passes_as_it_is(
    site: WebhookSite, webhook: Webhook, node: str
) -> None:
    """A pod that has nothing of ours is bound as ever, and the metric says so."""
    skipped = 'gpufence_webhook_requests_total{hook="bindings",result="skipped",reason="no-plan"}'
    before = webhook.metric(skipped)
    with site.namespace("cap") as name:
        created = site.create(name, objects.pod("web"))
        site.bind(name, created, node)
        found = site.pod(name, "web")

    assert {} == annotations_of(found)
    assert before + 1 == webhook.metric(skipped)


@pytest.mark.parametrize(
    ("mode", "seen"), [("observe", True), ("cap", True), ("evict", True), (None, False)]
)
def test_a_pod_that_is_only_tried_says_whether_the_webhook_is_called(
    mode: str | None, site: WebhookSite, *, seen: bool
) -> None:
    """The doctor's pod is changed in every mode, and left alone without one, as by a firewall."""
    reader = ClusterReader(site.admin, 1.0, print)
    with site.namespace(mode) as name:
        assert seen is try_pod(reader, {name}).value
        assert [] == site.admin.list(core("namespaces", name, "pods")).items
