"""What the API server and a stranger get over a real connection."""

import base64
import json

import pytest

from tests.support.rewriting import binding_review, encoded, pod, review
from tests.support.webhook_site import Webhook, ask

CAP = "/v1/pods/cap"
GPU_POD = pod() | {
    "spec": {
        "containers": [
            {"name": "main", "image": "none", "resources": {"limits": {"aliyun.com/gpu-mem": "3"}}}
        ]
    }
}


def test_a_gpu_pod_gets_a_patch(webhook: Webhook) -> None:
    """A review of a pod with a GPU resource comes back with operations that explain themselves."""
    status, body = webhook.post(CAP, encoded(review(object=GPU_POD)))
    response = json.loads(body)["response"]
    operations = json.loads(base64.b64decode(response["patch"]))

    assert (200, True, "JSONPatch") == (status, response["allowed"], response["patchType"])
    assert "gpufence.io/plan" in json.dumps(operations)


@pytest.mark.parametrize("mode", ["observe", "cap", "evict"])
def test_every_mode_has_its_path(webhook: Webhook, mode: str) -> None:
    """Each mode answers a review with the review's uid."""
    status, body = webhook.post(f"/v1/pods/{mode}", encoded(review(uid=f"uid-{mode}")))

    assert (200, f"uid-{mode}") == (status, json.loads(body)["response"]["uid"])


def test_a_binding_without_a_cluster_passes_as_it_is(webhook: Webhook) -> None:
    """Where nobody can be asked about the pod, its binding is allowed and unchanged."""
    status, body = webhook.post("/v1/bindings", encoded(binding_review(uid="b")))

    assert 200 == status
    assert {
        "uid": "b",
        "allowed": True,
        "auditAnnotations": {"result": "skipped", "reason": "no-cluster"},
    } == json.loads(body)["response"]


def test_the_plain_port_tells_health_readiness_and_numbers(webhook: Webhook) -> None:
    """Probes and Prometheus are answered without TLS."""
    assert (200, "ok\n") == webhook.get("/healthz")
    assert (200, "ok\n") == webhook.get("/readyz")
    assert "gpufence_webhook_ready 1" in webhook.get("/metrics")[1]


@pytest.mark.parametrize("path", ["/", "/metrics", "/docs", "/openapi.json", "/v1", "/v1/pods"])
def test_the_tls_port_serves_admissions_alone(webhook: Webhook, path: str) -> None:
    """A stranger who looks around finds nothing."""
    assert 404 == webhook.post(path, b"{}")[0]


def test_a_path_below_a_hook_is_no_hook(webhook: Webhook) -> None:
    """Paths count as a whole."""
    assert 404 == webhook.post(CAP + "/more", encoded(review()))[0]


def test_a_get_is_told_to_post(webhook: Webhook) -> None:
    """Somebody who tries it with a browser learns what belongs there."""
    connection = webhook.connect()

    assert (405, b"POST an AdmissionReview\n") == ask(connection, "GET", CAP)
    connection.close()


def test_a_hostile_body_is_refused_without_an_echo(webhook: Webhook) -> None:
    """Junk is HTTP 400 and a short reason that repeats nothing."""
    before = webhook.metric('gpufence_webhook_requests_total{hook="cap",result="rejected"')
    status, body = webhook.post(CAP, b'{"<script>": 1}')

    assert (400, b"the body is not an AdmissionReview of admission.k8s.io/v1\n") == (status, body)
    assert before + 1 == webhook.metric(
        'gpufence_webhook_requests_total{hook="cap",result="rejected"'
    )


@pytest.mark.parametrize("spec", [[], "spec", {"containers": "none"}, {"containers": [5]}])
def test_an_object_that_is_no_pod_is_no_bug_of_ours(webhook: Webhook, spec: object) -> None:
    """A stranger's badly shaped pod never counts as our failure, and changes nothing."""
    status, body = webhook.post(CAP, encoded(review(object=pod() | {"spec": spec})))

    assert status in {200, 400}
    assert b"patch" not in body


def test_a_large_pod_is_no_attack(webhook: Webhook) -> None:
    """A review of 3 MiB, the largest an API server sends, is answered."""
    item = pod(annotations={"big": "x" * 3 * 2**20})

    assert 200 == webhook.post(CAP, encoded(review(object=item)))[0]


def test_one_connection_serves_many_reviews(webhook: Webhook) -> None:
    """The API server's kept-alive connection stays open."""
    connection = webhook.connect()
    statuses = {ask(connection, "POST", CAP, encoded(review()))[0] for _ in range(50)}
    connection.close()

    assert {200} == statuses


def test_a_request_is_one_line_with_its_uid(webhook: Webhook) -> None:
    """The log tells what became of a request, by the uid the audit log knows."""
    webhook.post(CAP, encoded(review(uid="line-1", object=GPU_POD, dryRun=True)))
    line = webhook.wait_for_line(lambda line: line.get("uid") == "line-1")

    assert ("cap", "rewritten", "team-a", "trainer", True) == tuple(
        line[key] for key in ("hook", "result", "namespace", "name", "dryRun")
    )
