"""
The binding hook before a scripted API server: exact where everything is certain, else as it is.
"""

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from gpufence import names
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.quantity import GIB
from gpufence.times import Backoff
from kube import ClientSettings, connect
from kube.watch import WatchSettings
from tests.support.observing import wait_until
from tests.support.rewriting import binding, binding_review, encoded, review
from tests.support.servers import Answer, ApiServer, cut, hang, reply, watch
from webhook.cluster import ClusterView, LiveCluster
from webhook.hooks import BindingHook, PodHook
from webhook.policy import WebhookPolicy
from webhook.profiles import Profiles
from webhook.review import BINDINGS, PODS, Reply, ReviewResult, read_review

UNITS = Units(gpushare_bytes=GIB)
POLICY = WebhookPolicy(default=CandidateCard(UNITS, None))
POD = "/api/v1/namespaces/team-a/pods/trainer"
NODE = "/api/v1/nodes/node-t4"
DEADLINE_SECONDS = 30.0
HURRIED_SECONDS = 0.3
"""For tests that wait for the deadline; others have time enough on the busiest machine."""


def t4(**allocatable: str) -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.compute.major": "7",
        "nvidia.com/gpu.compute.minor": "5",
    }
    offered = allocatable or {names.GPUSHARE_MEMORY: "15", names.GPUSHARE_COUNT: "1"}
    return {
        "metadata": {"name": "node-t4", "labels": labels, "resourceVersion": "1"},
        "status": {"allocatable": offered},
    }


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": list(items)}


def bare_pod() -> dict[str, Any]:
    limits = {names.GPUSHARE_MEMORY: "3"}
    return {
        "metadata": {"name": "trainer", "namespace": "team-a", "uid": "pod-uid"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": limits}}]},
    }


def rewritten_pod(**annotations: str) -> dict[str, Any]:
    """Return the pod as our own pod hook leaves it."""
    cluster = ClusterView()
    hook = PodHook(Mode.CAP, cluster, POLICY)
    asked = read_review(encoded(review(object=bare_pod())), PODS)
    answer = json.loads(asyncio.run(hook.answer(asked)).body)["response"]
    operations = json.loads(base64.b64decode(answer["patch"]))
    said = next(each for each in operations if each["path"].startswith("/metadata/annotations"))
    made = bare_pod()
    made["metadata"]["annotations"] = {
        **(said["value"] if isinstance(said["value"], dict) else {}),
        **annotations,
    }
    return made


def pod_answer(mode: Mode, policy: WebhookPolicy, pod: dict[str, Any]) -> dict[str, Any]:
    asked = read_review(encoded(review(object=pod)), PODS)
    answer = asyncio.run(PodHook(mode, ClusterView(), policy).answer(asked))
    found: dict[str, Any] = json.loads(answer.body)["response"]
    return found


def test_refusals_and_warnings_end_with_the_link_to_what_helps() -> None:
    """It is a line of its own among warnings, and there is none where no page is named."""
    wrong = bare_pod()
    wrong["metadata"]["annotations"] = {names.MEMORY: "3Gb"}
    linked = replace(POLICY, help_url="https://wiki.example.com/gpu")
    link = "see https://wiki.example.com/gpu#refused"
    denied = pod_answer(Mode.EVICT, linked, wrong)["status"]["message"]
    warned = pod_answer(Mode.CAP, linked, wrong)["warnings"]

    assert denied == f"{pod_answer(Mode.EVICT, POLICY, wrong)['status']['message']} {link}"
    assert warned == [*pod_answer(Mode.CAP, POLICY, wrong)["warnings"], link]


class Stage:
    """An API server that says what a test told it to, and a cluster that follows it."""

    def __init__(self, server: ApiServer, deadline_seconds: float) -> None:
        self.server = server
        settings = ClientSettings(
            server=server.url,
            connect_timeout_seconds=deadline_seconds,
            reply_timeout_seconds=DEADLINE_SECONDS,
        )
        watching = WatchSettings(settled_seconds=0.0, backoff=Backoff(first_seconds=0.2))
        server.on("GET /api/v1/nodes", reply(listing()))
        server.on("GET /api/v1/namespaces", reply(listing()))
        server.on("WATCH /api/v1/nodes", watch(then="hang"))
        server.on("WATCH /api/v1/namespaces", watch(then="hang"))
        server.on(f"GET {POD}", reply(rewritten_pod()))
        server.on(f"GET {NODE}", reply(t4()))
        self.cluster = LiveCluster(
            connect(settings), UNITS, deadline_seconds, watching, (Profiles(),)
        )

    def bind(self, item: dict[str, Any] | None = None) -> Reply:
        hook = BindingHook(self.cluster, POLICY)
        asked = read_review(encoded(binding_review(item)), BINDINGS)
        return asyncio.run(hook.answer(asked))


@contextmanager
def staged(deadline_seconds: float) -> Iterator[Stage]:
    with ApiServer() as server:
        made = Stage(server, deadline_seconds)
        yield made
        made.cluster.stop()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(DEADLINE_SECONDS) as made:
        yield made


@pytest.fixture
def hurried() -> Iterator[Stage]:
    with staged(HURRIED_SECONDS) as made:
        yield made


def operations_of(reply_: Reply) -> list[dict[str, Any]]:
    response = json.loads(reply_.body)["response"]
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def skipped(reply_: Reply) -> str:
    """Return why a binding passed as it is."""
    response = json.loads(reply_.body)["response"]

    assert response["allowed"] is True
    assert "patch" not in response
    assert ReviewResult.SKIPPED is reply_.outcome.result
    return reply_.outcome.reason


def test_a_certain_binding_gets_its_values(stage: Stage) -> None:
    """With pod and node known, the Binding receives the annotations in one operation."""
    (operation,) = operations_of(stage.bind())

    assert ("add", "/metadata/annotations") == (operation["op"], operation["path"])
    assert "node-t4" == operation["value"][names.NODE]


def test_annotations_that_a_scheduler_brings_are_kept(stage: Stage) -> None:
    """Beside Volcano's own words ours are added one by one, with their slashes escaped."""
    operations = operations_of(stage.bind(binding(annotations={"volcano.sh/gpu-index": "0"})))

    assert "/metadata/annotations/gpufence.io~1node" in {each["path"] for each in operations}
    assert all(each["path"] != "/metadata/annotations" for each in operations)


def test_a_node_in_the_cache_is_not_asked_for(stage: Stage) -> None:
    """The hot way costs one question, for the pod."""
    stage.server.on("GET /api/v1/nodes", reply(listing(t4())))
    stage.cluster.start()
    stage.server.wait_for("WATCH /api/v1/nodes", 1)
    outcome = stage.bind().outcome

    assert ReviewResult.EXACT is outcome.result
    assert [] == stage.server.seen(f"GET {NODE}")


def missing(code: int, message: str) -> Answer:
    return reply({"kind": "Status", "code": code, "message": message}, code)


@pytest.mark.parametrize(
    ("reason", "answers"),
    [
        ("not-found", {POD: missing(404, "gone")}),
        ("api-error", {POD: missing(500, "broken")}),
        ("api-error", {POD: missing(403, "no")}),
        ("api-error", {POD: reply(b"<html>a proxy</html>")}),
        ("api-error", {POD: cut()}),
        ("no-plan", {POD: reply(bare_pod())}),
        ("no-values", {POD: reply(rewritten_pod(**{names.PLAN: "{"}))}),
        ("annotations-too-large", {POD: reply(rewritten_pod(big="x" * 240 * 1024))}),
        ("node-without-gpu", {NODE: reply(t4(cpu="4"))}),
    ],
    ids=[
        *("404", "500", "403", "html", "cut", "no plan", "a forged plan", "near the limit"),
        "no GPU",
    ],
)
def test_what_is_in_doubt_passes(stage: Stage, reason: str, answers: dict[str, Answer]) -> None:
    """
    Whatever keeps us from reading pod or node lets the binding pass, with its reason: most pods of
    a fenced namespace have no GPU, and the API server would not check large annotations here.
    """
    for path, answer in answers.items():
        stage.server.on(f"GET {path}", answer)

    assert reason == skipped(stage.bind())


@pytest.mark.parametrize(
    ("reason", "item"),
    [
        ("binding-without-uid", binding(uid=None)),
        ("binding-without-uid", binding(uid="")),
        ("binding-without-uid", binding(uid=7)),
        ("pod-replaced", binding(uid="another")),
        *(
            ("no-node", binding() | {"target": target})
            for target in (
                *({}, None, {"kind": "Node"}, {"kind": "Node", "name": ""}),
                {"kind": "Pod", "name": "x"},
            )
        ),
    ],
)
def test_a_binding_must_name_its_very_pod_and_a_node(
    stage: Stage, reason: str, item: dict[str, Any]
) -> None:
    """A uid that is absent or another's is a doubt; without a node there is no card."""
    assert reason == skipped(stage.bind(item))


def test_a_pod_that_nobody_answers_for_passes_at_the_deadline(hurried: Stage) -> None:
    """An API server that hangs holds up no binding for longer than the deadline."""
    hurried.server.on(f"GET {POD}", hang())

    assert "api-slow" == skipped(hurried.bind())


def test_a_name_that_is_no_path_is_not_asked_for(stage: Stage) -> None:
    """A stranger's Binding cannot make us ask for anything but a pod."""
    hook = BindingHook(stage.cluster, POLICY)
    asked = read_review(encoded(binding_review(name="../secrets")), BINDINGS)

    assert "bad-name" == skipped(asyncio.run(hook.answer(asked)))


def test_what_was_decided_is_dropped_from_a_binding_without_values(stage: Stage) -> None:
    """A binding that gets none of ours brings none of its own, either; others' keys stay."""
    stage.server.on(f"GET {POD}", reply(bare_pod()))
    item = binding_review(None)["request"]["object"]
    said = {names.MEMORY: "80Gi", f"{names.ENV_PREFIX}s0": "1", names.KAI_MEMORY: "1", "own": "x"}
    item["metadata"]["annotations"] = said
    answered = stage.bind(item)

    assert "no-plan" == answered.outcome.reason
    assert {
        ("remove", f"/metadata/annotations/{key.replace('/', '~1')}")
        for key in said
        if key != "own"
    } == {(each["op"], each["path"]) for each in operations_of(answered)}


def test_a_node_that_offers_nothing_but_claims_is_asked_for_them(stage: Stage) -> None:
    """Of a pod whose claim the scheduler has made itself, too."""
    claimed = rewritten_pod()
    claimed["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": "made"}}
    stage.server.on(f"GET {POD}", reply(claimed))
    stage.server.on(f"GET {NODE}", reply(t4(cpu="4")))

    assert "node-without-gpu" != skipped(stage.bind())


def test_too_many_questions_are_not_queued(hurried: Stage) -> None:
    """When the API server hangs, bindings pass at once rather than wait in line."""
    hurried.server.on(f"GET {POD}", hang())
    hook = BindingHook(hurried.cluster, POLICY)
    asked = read_review(encoded(binding_review()), BINDINGS)

    async def many() -> list[Reply]:
        return await asyncio.gather(*(hook.answer(asked) for _ in range(140)))

    reasons = [skipped(each) for each in asyncio.run(many())]

    assert 12 == reasons.count("busy")
    assert 128 == reasons.count("api-slow")


def test_a_namespace_that_is_not_known_yet_is_asked_for(stage: Stage) -> None:
    """Its words count for the first pod, too."""
    path = "/api/v1/namespaces/team-a"
    words = {"gpufence.io/memory": "2Gi"}
    stage.server.on(f"GET {path}", reply({"metadata": {"name": "team-a", "annotations": words}}))
    answer = _create(stage)

    assert "" == answer.outcome.reason
    assert b"2048Mi" in base64.b64decode(json.loads(answer.body)["response"]["patch"])


def test_without_an_answer_the_pod_is_rewritten_all_the_same(hurried: Stage) -> None:
    """The words of a namespace are defaults: the metric says that they were missed."""
    hurried.server.on("GET /api/v1/namespaces/team-a", hang())
    answer = _create(hurried)

    assert (ReviewResult.REWRITTEN, "namespace-unknown") == (
        answer.outcome.result,
        answer.outcome.reason,
    )


def test_it_is_not_ready_before_all_lists_have_come(stage: Stage) -> None:
    """
    Caches that were never filled would call every pod's card unknown; where there are no profiles
    and no slices it is ready all the same.
    """
    for path in ("gpufence.io/v1alpha1/gpumemoryprofiles", "resource.k8s.io/v1/resourceslices"):
        stage.server.on(f"GET /apis/{path}", reply({"kind": "Status", "code": 404}, 404))
    before = stage.cluster.trouble()
    stage.cluster.start()
    stage.server.wait_for("WATCH /api/v1/nodes", 1)
    stage.server.wait_for("WATCH /api/v1/namespaces", 1)
    wait_until(lambda: stage.cluster.trouble() is None)

    assert "nodes and namespaces and profiles and slices have not been read yet" == before
    assert {"nodes", "namespaces"} == set(stage.cluster.last_contacts(0.0))


def _create(stage: Stage) -> Reply:
    hook = PodHook(Mode.CAP, stage.cluster, POLICY)
    return asyncio.run(hook.answer(read_review(encoded(review(object=bare_pod())), PODS)))
