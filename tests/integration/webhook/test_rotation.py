"""Certificates change while a real API server asks without a pause."""

import threading
from concurrent.futures import ThreadPoolExecutor

from gpufence import names
from kube import ClientSettings, connect, core
from tests.support import objects
from tests.support.authority import write_secret
from tests.support.webhook_site import WebhookSite, annotations_of

CREATORS = 4
SWAPS = 20


def test_no_admission_is_lost_while_certificates_change(site: WebhookSite) -> None:
    """
    Twenty swaps under load: every pod is rewritten, and the API server never goes on without us.
    """
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
