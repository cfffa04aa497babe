"""Quotas for amounts in annotations: two replicas count the same, on a real API server."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, NamedTuple

import pytest

from gpufence import names
from kube import ClientSettings, ForbiddenError, KubeError, PatchType, connect, core
from tests.support import objects
from tests.support.observing import wait_until
from tests.support.rewriting import encoded, review
from tests.support.webhook_site import (
    CONFIGURATION,
    HOOK_SECONDS,
    Webhook,
    WebhookSite,
    annotations_of,
    configuration,
)
from tools.manifests import COMPONENTS
from tools.manifests import objects as manifests
from webhook.checks.quota import QUOTA, USED

LEDGER = core("namespaces", names.SYSTEM_NAMESPACE, "configmaps", names.QUOTA_LEDGER)
NUMBERS = count(1000)
AT_ONCE = 200
GIB = 2**30


class Pair(NamedTuple):
    """Two replicas, which the API server calls by the last digit of a pod's name."""

    site: WebhookSite
    replicas: tuple[Webhook, Webhook]

    @contextmanager
    def namespace(self, quota: str, mode: str = "evict", **annotations: str) -> Iterator[str]:
        """Lend a namespace whose quota both replicas know."""
        with self.site.namespace(mode, **{names.QUOTA_MEMORY: quota}, **annotations) as name:
            self.wait_for(QUOTA, name, lambda amount: amount is not None)
            yield name

    def wait_for(
        self, metric: str, namespace: str, holds: Callable[[float | None], object]
    ) -> None:
        for each in self.replicas:
            wait_until(partial(_holds, each, metric, namespace, holds))

    def wait_for_used(self, namespace: str, amount: int) -> None:
        self.wait_for(USED, namespace, lambda used: used == amount)

    def create(self, namespace: str, memory: str, **more: Any) -> str:
        """Make a pod, and return its name, or raise ForbiddenError."""
        name = f"p-{next(NUMBERS)}"
        self.site.create(namespace, asking(name, memory), **more)
        return name


def asking(name: str, memory: str) -> dict[str, Any]:
    return objects.annotated(objects.pod(name), gpufence_memory=memory)


def _holds(
    replica: Webhook, metric: str, namespace: str, holds: Callable[[float | None], object]
) -> bool:
    return bool(holds(shown(replica, metric, namespace)))


def shown(webhook: Webhook, metric: str, namespace: str) -> float | None:
    _, page = webhook.get("/metrics")
    start = f'{metric}{{namespace="{namespace}"}} '
    found = [line for line in page.splitlines() if line.startswith(start)]
    return float(found[0].split()[-1]) if found else None


def rights() -> list[dict[str, Any]]:
    return manifests(COMPONENTS / "quota")


@pytest.fixture(scope="module")
def counting(site: WebhookSite) -> WebhookSite:
    """Install the component, and wait until its rights count."""
    site.apply(*rights())
    account = str(site.kubeconfig_of(names.WEBHOOK_SERVICE))
    with connect(ClientSettings(kubeconfig=account)) as client:
        wait_until(lambda: _may(lambda: client.get(core("pods"), {"limit": 1})))
        wait_until(lambda: _may(lambda: client.get(LEDGER)))
    return site


def _may(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except KubeError:
        return False
    return True


@pytest.fixture(scope="module")
def pair(counting: WebhookSite) -> Iterator[Pair]:
    with ExitStack() as stack:
        first, second = (stack.enter_context(counting.webhook()) for _ in range(2))
        for each in (first, second):
            wait_until(partial(is_ready, each))
        called(counting, first, second)
        yield Pair(counting, (first, second))
        counting.drop(CONFIGURATION)


def called(site: WebhookSite, *replicas: Webhook) -> None:
    """Let the API server call each replica for its part of the pods, by their names."""
    item = configuration(replicas[0].port, site.authority, HOOK_SECONDS)
    item["webhooks"] = [
        _for(hook, replicas, place)
        for hook in item["webhooks"]
        for place in range(len(replicas))
        if "pods" in hook["name"]
    ]
    site.apply(item)
    for each in replicas:
        with site.namespace("cap") as name:
            wait_until(partial(_reached, site, name, each, each.calls()))


def _for(hook: Mapping[str, Any], replicas: tuple[Webhook, ...], place: int) -> dict[str, Any]:
    url = hook["clientConfig"]["url"].replace(str(replicas[0].port), str(replicas[place].port))
    digits = "".join(str(digit) for digit in range(10) if digit % len(replicas) == place)
    mine = {
        "name": "mine",
        "expression": f"object.metadata.?name.orValue('0').matches('[{digits}]$')",
    }
    return {
        **hook,
        "name": f"r{place}.{hook['name']}",
        "clientConfig": {**hook["clientConfig"], "url": url},
        "matchConditions": [*hook["matchConditions"], mine],
    }


def _reached(site: WebhookSite, namespace: str, replica: Webhook, before: float) -> bool:
    for _ in range(2):
        site.create(namespace, objects.gpu_pod(f"probe-{next(NUMBERS)}"), dry_run=True)
    return replica.calls() > before


def is_ready(replica: Webhook) -> bool:
    return replica.get("/readyz")[0] == HTTPStatus.OK


def crowd(pair: Pair, namespace: str) -> tuple[int, list[str]]:
    """Make many pods of 4Gi at once; return how many there are, and what was said of each."""
    settings = ClientSettings(kubeconfig=str(pair.site.kubeconfig), pool_connections=AT_ONCE)
    with connect(settings) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        path = core("namespaces", namespace, "pods")

        def make(number: int) -> str:
            try:
                client.post(path, asking(f"b-{number}", "4Gi"))
            except ForbiddenError as error:
                return str(error)
            return ""

        answers = list(pool.map(make, range(AT_ONCE)))
        made = len(client.list(path).items)
    pair.wait_for_used(namespace, made * 4 * GIB)
    return made, answers


def test_two_replicas_let_in_what_the_quota_holds(pair: Pair) -> None:
    """Of pods that are made at once exactly those that fit are, whichever replica is asked."""
    with pair.namespace("160Gi") as name:
        made, answers = crowd(pair, name)

    assert 40 == made
    assert 40 == answers.count("")
    assert all("160Gi" in answer for answer in answers if answer)


def test_without_the_ledger_no_replica_is_above_by_more_than_a_pod(pair: Pair) -> None:
    """Each lets in one after the other, as its watch brings them."""
    with pair.namespace("160Gi") as name:
        pair.site.drop(LEDGER)
        made, answers = crowd(pair, name)
        pair.site.apply(*(item for item in rights() if item["kind"] == "ConfigMap"))

    assert 40 <= made <= 42
    assert made == answers.count("")


def test_a_refusal_says_what_is_used_and_asked(pair: Pair) -> None:
    """Field, value, what is used of what, and what helps."""
    with pair.namespace("10Gi") as name:
        pair.create(name, "6Gi")
        with pytest.raises(ForbiddenError) as refused:
            pair.create(name, "5Gi")

    assert (
        'gpufence refuses this pod: metadata.annotations[gpufence.io/memory]: "5Gi" asks for 5Gi '
        "of GPU memory, and of the namespace's gpufence.io/quota-memory 10Gi are 6Gi in use by 1 "
        "pod; lower it, delete pods, or have the quota raised"
    ) in str(refused.value)


def test_a_dry_run_reserves_nothing(pair: Pair) -> None:
    """It is answered as the pod would be."""
    with pair.namespace("10Gi") as name:
        for _ in range(3):
            pair.create(name, "6Gi", dry_run=True)
        pair.create(name, "6Gi")
        with pytest.raises(ForbiddenError):
            pair.create(name, "6Gi", dry_run=True)


def test_what_a_pod_had_is_free_once_it_is_gone_or_has_ended(pair: Pair) -> None:
    """A deleted pod, and one that succeeded or failed, makes room at once for the next."""
    with pair.namespace("10Gi") as name:
        for phase in ("", "Succeeded", "Failed"):
            made = pair.create(name, "8Gi")
            pair.wait_for_used(name, 8 * GIB)
            path = core("namespaces", name, "pods", made)
            if phase:
                status = {"status": {"phase": phase}}
                pair.site.admin.patch(f"{path}/status", status, PatchType.MERGE)
            else:
                pair.site.admin.delete(path, {"gracePeriodSeconds": 0})
            pair.wait_for_used(name, 0)


def halved(name: str, pool: dict[str, str]) -> dict[str, Any]:
    """Return a pod that asks for half of a card of some nodes."""
    item = objects.annotated(objects.pod(name), **{names.KAI_FRACTION: "0.5"})
    item["spec"]["nodeSelector"] = pool
    return item


def test_a_share_counts_as_that_of_the_largest_card(pair: Pair) -> None:
    """Before the pod has a node, and of that node's card afterwards."""
    pool = {"pool": "quota"}  # nodes that other tests have left are none of its own
    labels = objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5)) | pool
    with (
        pair.site.known_nodes(pair.replicas[0], ("quota-t4", 15, labels)),
        pair.namespace("10Gi") as name,
    ):
        made = pair.site.create(name, halved("k-0", pool))
        pair.wait_for_used(name, objects.T4_MIB // 2 * 2**20)
        with pytest.raises(ForbiddenError, match="asks for 7680Mi of GPU memory"):
            pair.site.create(name, halved("k-2", pool))
        pair.site.bind(name, made, "quota-t4")
        wait_until(lambda: pair.site.pod(name, "k-0")["spec"].get("nodeName"))
        pair.wait_for_used(name, objects.T4_MIB // 2 * 2**20)


def test_a_quota_that_changes_counts_at_once(pair: Pair) -> None:
    """The next pod is measured by it."""
    with pair.namespace("4Gi") as name:
        with pytest.raises(ForbiddenError):
            pair.create(name, "6Gi")
        body = {"metadata": {"annotations": {names.QUOTA_MEMORY: "8Gi"}}}
        pair.site.admin.patch(core("namespaces", name), body, PatchType.MERGE)
        pair.wait_for(QUOTA, name, lambda amount: amount == 8 * GIB)

        assert pair.create(name, "6Gi")


def test_a_replica_that_starts_anew_knows_what_was_let_in(pair: Pair) -> None:
    """Pods are in its first list, and those that no list has yet are in the ledger."""
    with pair.namespace("10Gi") as name:
        pair.create(name, "6Gi")
        with pair.site.webhook() as fresh:
            wait_until(partial(is_ready, fresh))
            answer = asked(fresh, name, asking("late", "6Gi"))
            wait_until(lambda: shown(fresh, USED, name) == 6 * GIB)

    assert not answer["allowed"]


def test_what_the_webhook_did_not_see_is_shown(pair: Pair) -> None:
    """Pods that were made while it was away count, and the metric says so."""
    with pair.namespace("10Gi") as name:
        pair.site.drop(CONFIGURATION)
        wait_until(lambda: names.INJECTED not in annotations_of(tried(pair.site, name)))
        for _ in range(3):
            pair.create(name, "6Gi")
        pair.wait_for_used(name, 18 * GIB)
        called(pair.site, *pair.replicas)
        with pytest.raises(ForbiddenError, match="10Gi are 18Gi in use by 3 pods"):
            pair.create(name, "1536Mi")


def tried(site: WebhookSite, namespace: str) -> dict[str, Any]:
    return site.create(namespace, asking(f"t-{next(NUMBERS)}", "2Gi"), dry_run=True)


@pytest.mark.parametrize("mode", ["observe", "cap"])
def test_the_modes_below_warn(pair: Pair, mode: str) -> None:
    """The pod is made, and its creator reads what evict would refuse."""
    with pair.namespace("4Gi", mode) as name:
        answer = asked(pair.replicas[0], name, asking("a", "6Gi"), mode)

    assert answer["allowed"]
    assert "gpufence.io/quota-memory 4Gi are 0 in use by 0 pods" in " ".join(answer["warnings"])


def test_a_quota_that_cannot_be_read_refuses_nothing(pair: Pair) -> None:
    """The warning names the value and what would do."""
    with pair.site.namespace("evict", **{names.QUOTA_MEMORY: "lots"}) as name:
        wait_until(lambda: "warnings" in asked(pair.replicas[0], name, asking("a", "6Gi")))
        answer = asked(pair.replicas[0], name, asking("a", "6Gi"))

    assert answer["allowed"]
    assert (
        'namespace metadata.annotations[gpufence.io/quota-memory]: "lots" is not a Kubernetes '
        "quantity; write a number with an optional suffix, such as 6Gi, 1500Mi or 3"
    ) in answer["warnings"]


def test_a_second_pass_over_a_pod_counts_it_once(pair: Pair) -> None:
    """As API servers do after other webhooks; a third pod with the same ticket is another."""
    with pair.namespace("10Gi") as name:
        first = asking("twice", "6Gi")
        answer = asked(pair.replicas[0], name, first)
        ticket = ticket_in(answer)
        again = objects.annotated(asking("twice", "6Gi"), **{names.COUNTED: ticket})
        second = asked(pair.replicas[1], name, again)
        third = asked(pair.replicas[1], name, again)

    assert second["allowed"]
    assert ticket == ticket_in(second)
    assert not third["allowed"]


def test_where_the_ledger_is_lost_each_replica_counts_by_itself(pair: Pair) -> None:
    """No pod waits for it, and what a replica has let in it still knows."""
    with pair.namespace("10Gi") as name:
        pair.site.drop(LEDGER)
        made = asked(pair.replicas[0], name, asking("one", "6Gi"))
        more = asked(pair.replicas[0], name, asking("two", "6Gi"))
        pair.site.apply(*(item for item in rights() if item["kind"] == "ConfigMap"))
        again = asked(pair.replicas[0], name, asking("three", "4Gi"))
        ledger = pair.site.admin.get(LEDGER)

    assert [True, False, True] == [each["allowed"] for each in (made, more, again)]
    assert 2 == len(json.loads(ledger["data"][name]))


def asked(
    webhook: Webhook, namespace: str, item: dict[str, Any], mode: str = "evict"
) -> dict[str, Any]:
    """Ask a replica as the API server does."""
    body = encoded(review(object=item, namespace=namespace, name=item["metadata"]["name"]))
    found: dict[str, Any] = json.loads(webhook.post(f"/v1/pods/{mode}", body)[1])["response"]
    return found


def ticket_in(answer: Mapping[str, Any]) -> str:
    operations = json.loads(base64.b64decode(answer["patch"]))
    key = names.COUNTED.replace("/", "~1")
    found = (each for each in operations if each["path"].endswith(key) and each["op"] != "remove")
    return str(next(found)["value"])
