"""The webhook killed, the API server away, the cluster empty or brand-new."""

import json
from uuid import uuid4

from gpufence import names
from tests.integration.webhook.passing import assert_made_and_bound
from tests.support import objects
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


def test_without_any_node_the_plan_says_what_is_missing(site: WebhookSite) -> None:
    """Before the first GPU node has joined, the pod is made and told that no card is known."""
    with (
        site.webhook() as webhook,
        site.calling(webhook.port, webhook.calls),
        site.namespace("cap") as name,
    ):
        found = annotations_of(
            site.create(name, objects.gpu_pod("early", nodeSelector={"joins": "later"}))
        )

    assert 0 == len([key for key in found if key == names.NODE])
    assert "card" in found[names.WARNINGS]


def test_a_namespace_of_the_same_apply_is_known(site: WebhookSite) -> None:
    """Namespace and pod in one `kubectl apply`: the namespace's words count for the pod."""
    name = f"same-{uuid4().hex[:8]}"
    pod = objects.gpu_pod("trainer")
    pod["metadata"]["namespace"] = name
    items = [objects.namespace(name, "cap", gpufence_memory="2Gi"), pod]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    with site.webhook() as webhook, site.calling(webhook.port, webhook.calls):
        site.plane.kubectl("apply", "-f", "-", stdin=manifest)
        found = annotations_of(site.pod(name, "trainer"))
    site.plane.kubectl("delete", "namespace", name, "--wait=false")

    assert "2048Mi" == json.loads(found[names.PLAN])["limit"]


def gpu_review(namespace: str) -> bytes:
    return encoded(review(namespace=namespace, object=objects.gpu_pod("trainer")))
