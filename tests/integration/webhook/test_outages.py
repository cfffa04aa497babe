"""
Whatever becomes of the webhook, the API server or its store, pods are made and bound, in time.
"""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from gpufence import names
from kube import ClientSettings, PatchType, ServerError, connect, core
from tests.integration.webhook.front import assert_made_and_bound
from tests.support import objects
from tests.support.authority import write_secret
from tests.support.etcd import full
from tests.support.observing import wait_until
from tests.support.rewriting import encoded, review
from tests.support.webhook_site import WebhookSite, annotations_of


def test_a_webhook_killed_between_two_requests_stops_nobody(site: WebhookSite) -> None:
    """The kept connection breaks, and the pod that would have used it is made at once."""
    with site.webhook() as webhook, site.calling(webhook.port, webhook.calls):
        with site.namespace("cap") as name:
            first = site.create(name, objects.gpu_pod("first"))
        webhook.kill()

        assert_made_and_bound(site, seconds=0)

    assert names.INJECTED in annotations_of(first)


def test_a_restarted_api_server_finds_the_webhook_as_it_was(site: WebhookSite) -> None:
    """While the API server is away the caches go on serving; when it is back, so is everything."""
    with (
        site.webhook(GPUFENCE_API_DEADLINE_SECONDS="0.2") as webhook,
        site.gpu_node("fault-t4", 15, objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5))),
        site.namespace("cap", gpufence_memory="2Gi") as name,
        site.calling(webhook.port, webhook.calls),
    ):
        site.plane.stop_api_server()
        known = webhook.post("/v1/pods/cap", gpu_review(name))[1]
        unknown = webhook.post("/v1/pods/cap", gpu_review("of-a-minute-ago"))[1]
        ready = webhook.get("/readyz")
        missed = webhook.metric(
            'gpufence_webhook_requests_total{hook="cap",result="rewritten",reason="namespace-unk'
        )
        site.plane.start_api_server()
        site.wait_for_hooks(webhook.calls)
        after = site.create(name, objects.gpu_pod("after"))

    assert b'"patch"' in known
    assert b'"patch"' in unknown
    assert 1 == missed
    assert (200, "ok\n") == ready
    assert "2048Mi" == json.loads(annotations_of(after)[names.PLAN])["limit"]


def test_a_new_cluster_is_served(site: WebhookSite) -> None:
    """
    Namespace and pod in one `kubectl apply`: the namespace's words count for the pod, which is made
    before the first GPU node has joined, and told that no card is known.
    """
    name = f"same-{uuid4().hex[:8]}"
    pod = objects.gpu_pod("early", nodeSelector={"joins": "later"})
    pod["metadata"]["namespace"] = name
    items = [objects.namespace(name, "cap", gpufence_memory="2Gi"), pod]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    with site.webhook() as webhook, site.calling(webhook.port, webhook.calls):
        site.plane.kubectl("apply", "-f", "-", stdin=manifest)
        found = annotations_of(site.pod(name, "early"))
    site.plane.kubectl("delete", "namespace", name, "--wait=false")

    assert "2048Mi" == json.loads(found[names.PLAN])["limit"]
    assert names.NODE not in found
    assert "card" in found[names.WARNINGS]


def gpu_review(namespace: str) -> bytes:
    return encoded(review(namespace=namespace, object=objects.gpu_pod("trainer")))


T4 = ("full-t4", 15, objects.gpu_labels("Tesla-T4", objects.T4_MIB, (7, 5)))


def test_a_full_store_stops_no_answer(site: WebhookSite) -> None:
    """
    While nothing can be stored the webhook rewrites what the API server asks it about, serves a new
    certificate, and knows of what was stored afterwards.
    """
    with (
        site.webhook(GPUFENCE_TLS_POLL_SECONDS="0.05") as webhook,
        site.known_nodes(webhook, T4),
        site.namespace("cap") as name,
        site.calling(webhook.port, webhook.calls),
    ):
        fail_opens = site.fail_opens()
        with full(site.plane.folder):
            refused = refusal(site, name)
            tried = site.create(name, objects.gpu_pod("tried"), dry_run=True)
            count = len(webhook.lines)
            write_secret(site.tls_dir, site.authority.leaf(), 1)
            webhook.wait_for("certificate ", count)
            renewed = site.create(name, objects.gpu_pod("tried"), dry_run=True)
            ready = webhook.get("/readyz")
        words = {"metadata": {"annotations": {names.MEMORY: "2Gi"}}}
        site.admin.patch(core("namespaces", name), words, PatchType.MERGE)
        wait_until(lambda: "limit 2048Mi" in summary(site, name))
        made = site.create(name, objects.gpu_pod("made"))
        passed = site.fail_opens() - fail_opens

    assert "database space exceeded" in refused
    assert 0 == passed
    assert (200, "ok\n") == ready
    for each in (tried, renewed, made):
        assert names.INJECTED_YES == annotations_of(each)[names.INJECTED]


def test_a_webhook_starts_while_the_store_is_full(site: WebhookSite) -> None:
    """A replica that starts meanwhile reads all it needs, and is ready."""
    with full(site.plane.folder), site.webhook() as webhook:
        wait_until(lambda: webhook.get("/readyz")[0] == 200)


def refusal(site: WebhookSite, namespace: str) -> str:
    """Create a pod in earnest; return why that is refused."""
    try:
        site.create(namespace, objects.gpu_pod("refused"))
    except ServerError as error:
        return error.failure.message
    return ""


def summary(site: WebhookSite, namespace: str) -> str:
    said = annotations_of(site.create(namespace, objects.gpu_pod("asked"), dry_run=True))
    return said[names.SUMMARY]


CREATORS = 4
SWAPS = 20


def test_no_admission_is_lost_while_certificates_change(site: WebhookSite) -> None:
    """Twenty swaps under load: every pod is rewritten, the API server never goes on without us."""
    over = threading.Event()

    def create(namespace: str) -> list[bool]:
        seen = []
        with connect(ClientSettings(kubeconfig=str(site.plane.kubeconfig()))) as client:
            while not over.is_set():
                path = core("namespaces", namespace, "pods")
                made = client.post(path, objects.gpu_pod("trainer"), {"dryRun": "All"})
                seen.append(names.INJECTED in annotations_of(made))
        return seen

    with (
        site.webhook(GPUFENCE_TLS_POLL_SECONDS="0.05") as webhook,
        site.namespace("cap") as name,
        site.calling(webhook.port, webhook.calls),
        ThreadPoolExecutor(CREATORS) as pool,
    ):
        before = site.fail_opens()
        creators = [pool.submit(create, name) for _ in range(CREATORS)]
        try:
            for swap in range(SWAPS):
                count = len(webhook.lines)
                write_secret(site.tls_dir, site.authority.leaf(), 1000 + swap)
                webhook.wait_for("certificate ", count)
        finally:
            over.set()
        rewritten = [each for creator in creators for each in creator.result()]

        assert before == site.fail_opens()

    assert all(rewritten)
    assert len(rewritten) > CREATORS * SWAPS / 4
