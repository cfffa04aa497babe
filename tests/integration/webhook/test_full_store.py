"""Etcd's disk is full: the webhook reads, and answers, and needs to write nothing."""

from gpufence import names
from kube import PatchType, ServerError, core
from tests.support import objects
from tests.support.authority import write_secret
from tests.support.etcd import full
from tests.support.observing import wait_until
from tests.support.webhook_site import WebhookSite, annotations_of

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
