"""The doctor asks the API server and the webhooks."""

import base64
import datetime as dt
import time
from typing import Any

import pytest
import trustme
import yaml

from gpufence import names
from kubectl_gpufence.pods import STATUS_PORT, read_status_pod
from kubectl_gpufence.reader import AGENT_LABEL, WEBHOOK_LABEL
from kubectl_gpufence.verbs.doctor.installation import HOOKS, POLICIES
from tests.support.plugin import ABSENT, DENIED, NODE, Desk, agent_pod, listed, namespace
from tests.support.servers import Answer, Exchange, refusal, reply
from tests.support.tree import found
from tools import ROOT
from tools.manifests import objects

SYSTEM = "/api/v1/namespaces/gpufence-system"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEPLOYMENT = "/apis/apps/v1/namespaces/gpufence-system/deployments/gpufence-webhook"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/gpufence-system/endpointslices"
REVIEWS = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
METRICS = f"{SYSTEM}/pods/gpufence-webhook-a:8080/proxy/metrics"
EXPIRES = "gpufence_webhook_certificate_expiry_timestamp_seconds"
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
TARGET = "/apis/apps/v1/namespaces/team-a/deployments/quality"
TRIED = "POST /api/v1/namespaces/team-a/pods"
KINDS = ("namespaces", "nodes", "pods", "events")
AUTHORITY = trustme.CA()
EXAMPLE = ROOT / "deploy" / "examples" / "keda" / "scaled-object.yaml"
OBJECTS = (
    SYSTEM,
    DEPLOYMENT,
    f"{ADMISSION}/mutatingwebhookconfigurations/gpufence",
    f"{SYSTEM}/configmaps/gpufence-policy",
    *(f"{ADMISSION}/validatingadmissionpolicies/{name}" for name in POLICIES),
    *(f"{ADMISSION}/validatingadmissionpolicybindings/{name}" for name in POLICIES),
)


@pytest.fixture
def healthy(desk: Desk) -> Desk:
    """Script an installation in which everything is well."""
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}}
    desk.get("/version", reply({"gitVersion": "v1.37.1"}))
    for path in OBJECTS:
        desk.get(path, reply({"kind": "Something"}))
    desk.get(DEPLOYMENT, reply({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}))
    desk.get(OBJECTS[2], hooks_with(encoded(AUTHORITY.cert_pem.bytes())))
    desk.get(SLICES, listed({"endpoints": [endpoint]}))
    for kind in ("resourceslices", "deviceclasses"):
        desk.get(f"/apis/resource.k8s.io/v1/{kind}", listed())
    desk.get("/api/v1/namespaces", listed(namespace("team-a", "evict")))
    desk.get("/api/v1/events", listed())
    desk.get("/api/v1/resourcequotas", listed())
    desk.server.on(TRIED, reply({"metadata": {"annotations": {names.INJECTED: "true"}}}, 201))
    desk.get(METRICS, reply(f"{EXPIRES} {time.time() + 60.1 * 86400:.0f}\n".encode()))
    desk.server.on(REVIEWS, reply({"status": {"allowed": True}}))
    desk.get(f"{SYSTEM}/pods", pods_by_label)
    return desk


def pods_by_label(exchange: Exchange) -> None:
    """Answer with the agent or with the webhook, as the label asks."""
    name = "gpufence-webhook-a" if "webhook" in exchange.path else "gpufence-agent-x"
    listed(agent_pod(name))(exchange)


def test_a_healthy_installation_has_code_zero(healthy: Desk) -> None:
    """Everything is asked for, and all is well."""
    said = healthy.run("doctor")

    assert "all is well" == said.out.splitlines()[-1], said.out
    assert 0 == said.code
    assert "the certificate that gpufence-webhook-a serves lasts 60d" in said.out


def test_a_webhook_that_does_not_tell_its_certificate_is_left_out(healthy: Desk) -> None:
    """Whether it runs is said by its Deployment already."""
    healthy.get(METRICS, DENIED)

    assert "gpufence-webhook-a" not in healthy.run("doctor").out


NONE = "holds no certificate that can be read"


def hooks_with(bundle: str) -> Answer:
    hooks = [
        {"name": name, "failurePolicy": "Ignore", "clientConfig": {"caBundle": bundle}}
        for name in HOOKS
    ]
    return reply({"webhooks": hooks})


def encoded(*pems: bytes) -> str:
    return base64.b64encode(b"".join(pems)).decode()


@pytest.mark.parametrize(
    ("bundle", "said"),
    [
        ("%%%", NONE),
        (encoded(b"\xff\xfe"), NONE),
        (encoded(b"no certificate"), NONE),
        (encoded(AUTHORITY.issue_cert("a.test").cert_chain_pems[0].bytes()), NONE),
        (encoded(AUTHORITY.cert_pem.bytes(), trustme.CA().cert_pem.bytes()), "is valid (2 CAs, "),
        ("", "is empty: the API server trusts no webhook"),
    ],
    ids=["no base64", "no text", "no PEM", "no CA", "two", "empty"],
)
def test_each_ca_of_a_bundle_has_its_time(healthy: Desk, bundle: str, said: str) -> None:
    """What is no bundle, if only a server's certificate, is called so."""
    healthy.get(OBJECTS[2], hooks_with(bundle))

    assert said in healthy.run("doctor").out


@pytest.mark.parametrize("page", [f"{EXPIRES}x 1", f"{EXPIRES} much", f'{EXPIRES}{{a="b"}} 3'])
def test_a_metric_is_found_by_its_whole_name(healthy: Desk, page: str) -> None:
    """Neither a longer name nor one with labels is taken for it, nor what is no number."""
    healthy.get(METRICS, reply(f"# HELP {EXPIRES} 12\n{page}\n".encode()))

    assert "gpufence-webhook-a has no certificate to serve with" in healthy.run("doctor").out


def names_of(kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in objects() if item["kind"] == kind}


def test_what_is_looked_for_is_what_the_manifests_install() -> None:
    """No hook, policy or object is missed, and none asked for that does not exist."""
    hooks = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]

    assert set(HOOKS) == {hook["name"] for hook in hooks}
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicy")
    assert set(POLICIES) == names_of("ValidatingAdmissionPolicyBinding")
    assert names.POLICY_CONFIGMAP in names_of("ConfigMap")
    assert names.SYSTEM_NAMESPACE in names_of("Namespace")


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("DaemonSet", "gpufence-agent", AGENT_LABEL),
        ("Deployment", names.WEBHOOK_SERVICE, WEBHOOK_LABEL),
    ],
)
def test_agents_and_webhooks_are_found_by_their_labels(kind: str, name: str, label: str) -> None:
    """The labels and the status port are those of the pods' templates."""
    template = found(kind, name)["spec"]["template"]
    key, _, value = label.partition("=")

    assert value == template["metadata"]["labels"][key]
    assert STATUS_PORT == read_status_pod(template).port


def test_what_tenants_have_written_draws_nothing(healthy: Desk) -> None:
    """Annotations and labels that cannot be read are shown, on lines of their own."""
    space = namespace("team-a", "evict")
    drawing = "\x1b[2J\u202e\n"
    space["metadata"]["annotations"] = {names.MAX_MEMORY: drawing}
    space["metadata"]["labels"][names.IDLE] = drawing
    healthy.get("/api/v1/namespaces", listed(space))
    lines = healthy.run("doctor").out.splitlines()

    assert [] == [line for line in lines if not line.isprintable()]
    assert ["2J" in line for line in lines].count(True)


def test_what_is_absent_is_wrong(healthy: Desk) -> None:
    """Objects of the installation that are missing make the code 1; policies are one of them."""
    for path in OBJECTS:
        healthy.get(path, ABSENT)

    said = healthy.run("doctor", "-o", "json")

    wrong = [item for item in said.json["checks"] if item["level"] == "wrong"]
    assert 1 == said.code
    assert len(OBJECTS) - 2 * len(POLICIES) + 1 == len(wrong)
    (policies,) = [item["said"] for item in wrong if item["subject"] == "policies"]
    assert all(name in policies for name in POLICIES)


@pytest.mark.parametrize(("answers", "code"), [(1, 0), (99, 1)])
def test_a_wait_lasts_until_all_has_started(healthy: Desk, answers: int, code: int) -> None:
    """What was made a moment ago is starting and not wrong, unless it outlasts the wait."""
    left = iter(range(answers))
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def rolling(exchange: Exchange) -> None:
        ready = int(next(left, None) is None)
        made = {"metadata": {"creationTimestamp": now}, "spec": {"replicas": 1}}
        reply({**made, "status": {"readyReplicas": ready}})(exchange)

    healthy.get(DEPLOYMENT, rolling)
    said = healthy.run("doctor", "--wait", "2s" if code == 0 else "100ms")

    assert code == said.code
    assert ("all is well" if code == 0 else "1 thing is starting") in said.out.splitlines()[-1]


def test_what_is_hidden_is_not_wrong(healthy: Desk) -> None:
    """A tenant who runs the doctor finds out little, and nothing false."""
    for path in (*OBJECTS, SLICES, *(f"/api/v1/{kind}" for kind in KINDS)):
        healthy.get(path, DENIED)
    healthy.get(f"{SYSTEM}/pods", DENIED)
    healthy.server.on(REVIEWS, reply({"status": {"allowed": False}}))

    said = healthy.run("doctor")

    assert 0 == said.code
    assert "could not be found out" in said.out.splitlines()[-1]
    assert "you may not list pods in all namespaces, list nodes" in said.out


def test_rights_that_cannot_be_asked_for_are_not_claimed(healthy: Desk) -> None:
    """Where the review itself is refused, nothing is said about permissions."""
    healthy.server.on(REVIEWS, DENIED)

    assert "permissions" not in healthy.run("doctor").out


def test_a_silent_agent_leads_to_its_address(healthy: Desk) -> None:
    """Nobody is sent to the logs of a pod that there is not."""
    said = healthy.run("doctor", "--agents", f"{NODE}=http://127.0.0.1:9")

    assert 1 == said.code
    assert "-> see what the agent at http://127.0.0.1:9 logs" in said.out


def scaler(within: str = "team-a", *, works: bool = True) -> dict[str, Any]:
    """Build what the example scales by; or the same without the trigger for what works."""
    made: dict[str, Any] = list(yaml.safe_load_all(EXAMPLE.read_text()))[-1]
    made["metadata"]["namespace"] = within
    if not works:
        del made["spec"]["triggers"][1]
    return made


def deployment(**limits: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": limits}}
    return {
        "metadata": {"name": "quality", "namespace": "team-a"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


@pytest.fixture
def scaled(healthy: Desk) -> Desk:
    """Script a ScaledObject of a Deployment that asks for a card, in a fenced namespace."""
    group = {"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}
    resource = {"name": "deployments", "kind": "Deployment", "namespaced": True}
    healthy.get("/apis", reply({"groups": [group]}))
    healthy.get("/apis/apps/v1", reply({"resources": [resource]}))
    healthy.get(TARGET, reply(deployment(**{names.GPUSHARE_MEMORY: "3"})))
    healthy.get(SCALED_OBJECTS, listed(scaler()))
    return healthy


ODD = scaler(works=False)
ODD["spec"]["scaleTargetRef"]["kind"] = "Unheard"
QUEUE = "1 ScaledObject of GPU owners: what waits counts, and what works"
SCALERS: dict[str, tuple[dict[str, Answer], list[tuple[str, str]]]] = {
    "the example": ({}, [("ok", QUEUE)]),
    "a pool scaled by its queue alone": (
        {SCALED_OBJECTS: listed(scaler(works=False), scaler())},
        [("look", "ScaledObject team-a/quality of Deployment/quality counts what waits")],
    ),
    **{
        f"a target that {what}": (
            {SCALED_OBJECTS: listed(scaler(works=False)), TARGET: answer},
            [],
        )
        for what, answer in {
            "is gone": ABSENT,
            "asks for no GPU": reply(deployment(cpu="1")),
            "is odd": reply({"spec": {"template": "odd"}}),
        }.items()
    },
    "a kind that is not there": ({SCALED_OBJECTS: listed(ODD)}, []),
    "no mode": ({SCALED_OBJECTS: listed(scaler("team-b", works=False))}, []),
    "no KEDA": ({SCALED_OBJECTS: ABSENT}, []),
    "hidden": (
        {SCALED_OBJECTS: DENIED},
        [("unknown", "you may not see scaledobjects of all namespaces")],
    ),
}


@pytest.mark.parametrize(("answers", "expected"), SCALERS.values(), ids=SCALERS)
def test_what_scales_by_its_queue_alone_is_found(
    scaled: Desk, answers: dict[str, Answer], expected: list[tuple[str, str]]
) -> None:
    """It does not tell busy workers from idle ones; what is not about GPUs is left alone."""
    for path, answer in answers.items():
        scaled.get(path, answer)
    checks = scaled.run("doctor", "-o", "json").json["checks"]
    said = [(item["level"], item["said"]) for item in checks if item["subject"] == "autoscalers"]

    assert [level for level, _ in expected] == [level for level, _ in said]
    assert all(text in found for (_, text), (_, found) in zip(expected, said, strict=True))


@pytest.mark.parametrize(
    ("answer", "said", "code"),
    [
        (
            reply({"metadata": {}}, 201),
            "WRONG    webhook       a pod that was only tried came back",
            1,
        ),
        (
            refusal(403, "Forbidden", "violates PodSecurity"),
            "a pod could not be tried in team-a",
            0,
        ),
        (refusal(422, "Invalid", "a policy"), "a pod could not be tried in team-a", 0),
        (
            refusal(403, "Forbidden", 'hook "cap.pods.gpufence.io" denied'),
            "the API server reaches it",
            0,
        ),
    ],
    ids=("firewall", "forbidden", "invalid", "refused"),
)
def test_a_webhook_that_is_not_reached_is_found(
    answer: Answer, said: str, code: int, healthy: Desk
) -> None:
    """A pod that was only tried comes back as it was: nothing else shows a firewall."""
    healthy.server.on(TRIED, answer)
    done = healthy.run("doctor")

    assert (True, code) == (said in done.out, done.code), done.out
    assert {"dryRun": "All"} == healthy.server.seen(TRIED)[0].query


def test_without_the_right_no_pod_is_tried(healthy: Desk) -> None:
    """A viewer may not create pods, and is told nothing of it."""
    healthy.server.on(TRIED, refusal(403, "Forbidden", 'cannot create resource "pods"'))

    assert "tried" not in healthy.run("doctor").out
