"""What `explain` says of rare pods, in place of what it says of a pod within its limit."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufence import names
from gpufence.capped import Ending, read_endings
from gpufence.mode import Mode
from gpufence.pods import EXTENDED
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import PodActivityRow
from kubectl_gpufence.cluster_view import NodeAgent
from kubectl_gpufence.endings import what_helps
from kubectl_gpufence.pods import SeenEvent, SeenPod, read_recorded, see_pod
from kubectl_gpufence.refusals import of_owner, ours
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.document import document
from kubectl_gpufence.verbs.explain.gone import Gone, gone_document, gone_lines, is_about, made_like
from kubectl_gpufence.verbs.explain.record import PodRecord, read_events
from kubectl_gpufence.view import Display
from tests.support import builders
from tests.support.builders import container, gpushare, pod
from tests.support.golden import assert_cases, changed, leaves
from tests.support.plugin import agent, pod_row, raw_pod, seen_pod, snapshot, use_row
from tests.support.plugin_cases import explained, holding
from tests.support.rewriting import rewritten_with_claims, with_old_slots

FILES = Path(__file__).parent / "rare"
WIDE = Display(200)


def record(made: SeenPod, said: NodeAgent | None = None, mode: str | None = "evict") -> PodRecord:
    return PodRecord(made, mode, said or agent(snapshot()))


def planned(**changes: Any) -> SeenPod:
    """Build a pod whose plan says something else."""
    made = seen_pod()
    plan = made.recorded.plan
    assert plan is not None
    return replace(made, recorded=replace(made.recorded, plan=plan._replace(**changes)))


def without(key: str, **changes: Any) -> SeenPod:
    """Build a pod that has lost one of the webhook's annotations."""
    raw = raw_pod(**changes)
    del raw["metadata"]["annotations"][key]
    return see_pod(raw, None)


def shared(**changes: Any) -> SeenPod:
    """Build a pod that asks for half of a card that only the webhook knew."""
    half = {names.KAI_FRACTION: "0.5"}
    return see_pod(raw_pod(container("main"), annotations=half, **changes), None)


def undeclared(**words: str) -> SeenPod:
    raw = raw_pod(container("web"), mode=None)
    return see_pod(raw, None, {names.UNDECLARED_USE: "evict", **words})


def holds(used: int, **changes: Any) -> NodeAgent:
    return agent(snapshot(pod_row(use_row(used)), **changes))


LOWERED = agent(snapshot(pod_row(mode="observe")))
AGAIN = Ending("trainer", 3, restarts=2, waiting="CrashLoopBackOff")
NOTHING = agent(snapshot(pod_row()._replace(uses=()), stale_seconds=None))
UNTOUCHED = agent(
    snapshot(pod_row(activity=PodActivityRow("idle", 23.0, "NoKernels"))._replace(uses=()))
)
STORIES: dict[str, PodRecord] = {
    "the kill switch lowers mode cap": record(seen_pod(mode=Mode.CAP), LOWERED),
    "the kill switch lowers mode observe": record(seen_pod(mode=Mode.OBSERVE), LOWERED),
    "only observed": record(seen_pod(mode=Mode.OBSERVE), mode="observe"),
    "no card is known": record(without(names.CARD, bound=False)),
    "no plan": record(without(names.PLAN)),
    "a plan with another limit": record(planned(limit_bytes=GIB + 1)),
    "a plan without a limit": record(planned(limit_bytes=None)),
    "a plan without containers": record(planned(containers={})),
    "half of a card": record(shared()),
    "half of a card, and no plan": record(shared(mode=None)),
    "a ceiling of its namespace": record(seen_pod(namespace={names.MAX_MEMORY: "2Gi"})),
    "another pod of its name is measured": record(seen_pod(uid="new")),
    "a container without a GPU": record(seen_pod(gpushare("main"), container("other"))),
    "no agent on its node": PodRecord(seen_pod(), "evict"),
    "nothing held, never measured": record(seen_pod(), NOTHING),
    "more than its settings, by an older agent": record(seen_pod(), holds(3000 * MIB)),
    "more than its settings and no slack": record(seen_pod(), holds(3000 * MIB, cap_slack_bytes=0)),
    "no more than slack": record(seen_pod(), holds(3000 * MIB, cap_slack_bytes=GIB)),
    "a container that fails again and again": record(
        replace(seen_pod(), endings=(AGAIN,)), UNTOUCHED
    ),
    "undeclared use is evicted": record(undeclared()),
    "undeclared use up to an amount": record(undeclared(**{names.MAX_MEMORY: "2Gi"})),
}


def told(item: PodRecord) -> list[str]:
    return explanation(item, WIDE)


def test_rare_stories_are_those_reviewed() -> None:
    """Whatever is missing, or known to one side alone, the explanation says so, and no more."""
    usual = told(record(seen_pod()))

    assert_cases(
        FILES / "stories.txt",
        {title: changed(usual, told(item)) for title, item in STORIES.items()},
    )


def claimed(item: Any, *, named: bool = True) -> SeenPod:
    """See a pod with one claim, as the webhook left it and the API server shows the claim."""
    ref = builders.by_name("gpu", "c") if named else builders.by_template("gpu", "t")
    raw = pod(builders.claiming(container(), gpu=""), resourceClaims=[ref])
    raw["metadata"]["uid"] = "uid-1"
    return see_pod(rewritten_with_claims(raw, {"gpu": item}), None, {}, {"gpu": item})


def two_names(**asked: Any) -> SeenPod:
    """See a container that uses claims by these names."""
    refs = [builders.by_name(name, item["metadata"]["name"]) for name, item in asked.items()]
    raw = pod(builders.claiming(container(), **dict.fromkeys(asked, "")), resourceClaims=refs)
    return see_pod(raw, None, {}, asked)


def by_scheduler() -> SeenPod:
    """See a pod for which the scheduler has made a claim."""
    mapping = {"containerName": "main", "requestName": "r", "resourceName": "example.com/gpu"}
    raw = pod(container())
    raw["metadata"]["uid"] = "uid-1"
    raw["status"] = {
        "extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}
    }
    item = builders.allocated(builders.claim("x"), builders.result(memory="1Gi", name="r"))
    item["metadata"]["ownerReferences"] = [{"kind": "Pod", "uid": "uid-1"}]
    return see_pod(raw, None, {}, {EXTENDED: item})


def asking(name: str, *amount: str) -> Any:
    return builders.claim(name, builders.request(*amount))


def given(*users: str, **result: Any) -> Any:
    return builders.allocated(builders.claim("c"), builders.result(**result), users=users)


UNUSED = pod(container(), resourceClaims=[builders.by_name("gpu", "c")])
ONE = asking("one", "1Gi")
CLAIMS: dict[str, SeenPod] = {
    "an amount is asked for": claimed(asking("c", "3Gi")),
    "no amount is asked for": claimed(asking("c")),
    "an amount is given, together with others": claimed(
        given("uid-1", "uid-2", "uid-3", memory="3Gi")
    ),
    "all of a card is given": claimed(given()),
    "a claim that no container uses": see_pod(UNUSED, None, {}, {}),
    "a template that does not exist": claimed("does not exist", named=False),
    "a claim that the scheduler made": by_scheduler(),
    "two claims": two_names(a=asking("claim-a", "1Gi"), b=asking("claim-b", "2Gi")),
    "one claim by two names": two_names(a=ONE, b=ONE),
}


def test_claims_are_told_as_reviewed() -> None:
    """What each claim asks for and has got, of which device, with how many others; each once."""

    def declared(made: SeenPod) -> list[str]:
        lines = told(PodRecord(made, "cap"))
        return lines[lines.index("DECLARED") + 1 : lines.index("INJECTED") - 1]

    cases = {title: declared(made) for title, made in CLAIMS.items()}

    assert_cases(FILES / "claims.txt", cases)


def test_events_of_agents_are_told_in_order() -> None:
    """Other reasons are left out, refused pods are not; newer forms of events are read too."""
    over = {"reason": names.LIMIT_EXCEEDED, "lastTimestamp": "2026-01-02T00:00:01Z"}
    events = read_events(
        [
            {"reason": names.EVICTED, "eventTime": "2026-01-02T00:00:02Z", "message": "out"},
            {"reason": "Pulled", "message": "image"},
            over | {"count": 4, "message": "over"},
            {"reason": names.UNDECLARED},
            {"reason": "FailedCreate", "message": "refused"},
        ]
    )

    assert [
        "at some time GPUMemoryUndeclared: ",
        "at some time FailedCreate: refused",
        "2026-01-02T00:00:01Z GPUMemoryLimitExceeded (4 times): over",
        "2026-01-02T00:00:02Z GPUMemoryEvicted: out",
    ] == [item.sentence for item in events]


GONE_CARD = pod_row(
    use_row(2 * GIB, card="GPU-gone"), activity=PodActivityRow("idle", 763.0, "NoKernels")
)
LEFT = {"name": "JULIA_CUDA_HARD_MEMORY_LIMIT", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}
OWN = seen_pod(gpushare("trainer") | {"env": [LEFT]}, annotations={names.WARNINGS: ""})
EVENT = SeenEvent("2026-01-02T03:04:05Z", names.LIMIT_EXCEEDED, 3, "held 1024 MiB")
DOCUMENTS = {
    "over its limit": record(seen_pod(), holding()),
    "nothing is known": record(
        seen_pod(mode=None), agent(None, "it does not answer in time"), mode=None
    ),
    "an old sample": record(seen_pod(), agent(snapshot(GONE_CARD, stale_seconds=200.0))),
    "a fresh sample of a card that is gone": record(seen_pod(), agent(snapshot(GONE_CARD))),
    "values of its own, and Events": PodRecord(OWN, "evict", holding(), events=(EVENT,)),
}


def test_documents_are_those_reviewed() -> None:
    """Amounts are quantities, what is unknown or old is null, and says why."""
    usual = [*leaves(document(DOCUMENTS["over its limit"]))]
    cases = {
        title: changed(usual, leaves(document(item))) or usual for title, item in DOCUMENTS.items()
    }

    assert_cases(FILES / "documents.txt", cases)


def test_a_pod_with_numbers_for_slots_is_explained_as_any_other() -> None:
    """What an earlier version set is found by the plan, whatever the annotations are called."""
    raw = raw_pod()
    old = with_old_slots(raw)

    assert f"{names.ENV_PREFIX}s0" in old["metadata"]["annotations"]
    assert explained(see_pod(raw, None)) == explained(see_pod(old, None))


OOM = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
NO_HOOK = "error running createRuntime hook #0: nvidia-ctk: nvmlDeviceSetMemoryLimits_v1"


def failed(
    code: int = 1, message: str = "", of: str = "containerStatuses", **changes: Any
) -> dict[str, Any]:
    ended = {"exitCode": code, "reason": "Error", "finishedAt": "2026-01-02T03:04:05Z"}
    status = {"name": "trainer", "restartCount": 3, "lastState": {"terminated": ended}}
    ended |= {"message": message} if message else {}
    return {"status": {of: [status | changes]}}


def waiting(reason: str, **more: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason, **more}}


ENDINGS: dict[str, dict[str, Any]] = {
    "a failure": failed(),
    "a crash loop": failed(state=waiting("CrashLoopBackOff")),
    "out of memory, once": failed(message=OOM, restartCount=1),
    "refused by a hook": failed(0, state=waiting("RunContainerError", message=NO_HOOK)),
    "an init container": failed(of="initContainerStatuses"),
    "ended well": failed(0),
    "never ended": {"status": {"containerStatuses": [{"name": "a"}]}},
    "no status": {},
}
ENDED = Ending("trainer", 1, "Error", "", 0, out_of_memory="CUDA out of memory")
SIDECAR = ENDED._replace(out_of_memory="", container="sidecar")
IN_TWO = {names.PROCESSES_PER_CARD: "2", names.HEADROOM: "auto"}
HELPS: dict[str, tuple[Ending, dict[str, str] | None, int]] = {
    "at the cap": (ENDED, {}, 8),
    "at the cap of a small limit": (ENDED, {}, 2),
    "at the cap by headroom auto": (ENDED, {names.HEADROOM: "auto"}, 8),
    "at the cap of two processes": (ENDED, IN_TWO, 8),
    "not for want of memory": (ENDED._replace(out_of_memory=""), {}, 8),
    "a container without a cap": (ENDED._replace(container="other"), {}, 8),
    "no plan": (SIDECAR, None, 8),
}


def helps(ending: Ending, annotations: dict[str, str] | None, amount: int) -> Iterable[str]:
    """Say what helps a container of a pod with this limit."""
    raw = raw_pod(gpushare("trainer", amount), annotations=annotations or {})
    plan = read_recorded(raw["metadata"]["annotations"]).plan
    return what_helps([ending], None if annotations is None else plan)


def test_ends_of_containers_are_those_reviewed() -> None:
    """How each failed, what it said, and what a cap has to do with it, with its amounts."""
    ended = {
        title: [each.sentence for each in read_endings(raw.get("status", {}))]
        for title, raw in ENDINGS.items()
    }

    assert_cases(
        FILES / "endings.txt",
        {**ended, **{f"helps: {title}": helps(*case) for title, case in HELPS.items()}},
    )


CREATING = "Error creating: "
NOT_MADE = {
    "ReplicaSet/worker-7d9f": f"{CREATING}gpufence refuses this pod: too little",
    "ReplicaSet/worker-b-7d9f": "gpufence refuses this pod: another owner",
    "Deployment/worker": "gpufence refuses this pod: the owner itself",
    "ReplicaSet/worker-88bb": "exceeded quota: gpus",
    "StatefulSet/mine": "gpufence refuses this pod: the notebook's",
    "StatefulSet/mine-too": "gpufence refuses this pod: by its name",
    "StatefulSet/miner": "gpufence refuses this pod: not by its name",
}


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("Deployment/worker", ["too little", "the owner itself"]),
        ("ReplicaSet/worker-b-7d9f", ["another owner"]),
        ("StatefulSet/mine", ["the notebook's"]),
        ("Notebook/mine", ["the notebook's", "by its name"]),
        ("Job/worker", []),
    ],
)
def test_refusals_are_those_of_our_webhook_about_an_owner(owner: str, expected: list[str]) -> None:
    """Of a kind above the usual ones what is called like it; without the API server's words."""
    events = [
        SeenEvent(f"2026-01-02T03:04:0{place}Z", "FailedCreate", 1, message, f"team-a/{about}")
        for place, (about, message) in enumerate(NOT_MADE.items())
    ]
    other = events[0]._replace(reason="Failed")
    found = of_owner(ours(reversed([*events, other])), owner)

    assert [f"gpufence refuses this pod: {why}" for why in expected] == [
        event.message for event in found
    ]


LOST = "pod worker-7d9f-x2x4k"
SAID = SeenEvent("2026-01-02T03:04:05Z", names.EVICTED, 1, "over", "team-a/Pod/worker-7d9f-x2x4k")
REFUSED = SAID._replace(reason="FailedCreate", message="gpufence refuses this pod: too little")
RELEASED = SAID._replace(reason=names.IDLE_RELEASED, message="released 1 replica")
GONE = {
    "a pod with successors": Gone(
        "team-a", LOST, (SAID,), tuple(f"worker-{at}" for at in "abcdef")
    ),
    "an owner without pods": Gone("team-a", "Deployment worker", (SAID,)),
    "an owner whose pods were refused": Gone("team-a", "Deployment worker", (REFUSED,)),
    "an owner that was released": Gone("team-a", "Deployment worker", (RELEASED, RELEASED)),
    "a pod that went after a warning": Gone("team-a", LOST, (SAID._replace(reason="Warned"),)),
    "an owner of which nothing is left": Gone("team-a", "Deployment worker"),
}


def test_what_is_left_of_pods_is_shown_as_reviewed() -> None:
    """Events, and the pod that came after as a command to type."""
    cases = {
        title: [*gone_lines(gone, Display()), json.dumps(gone_document(gone))]
        for title, gone in GONE.items()
    }

    assert_cases(FILES / "gone.txt", cases)


@pytest.mark.parametrize(
    ("gone", "pods", "expected"),
    [
        ("worker-7d9f-x2x4k", {"worker-7d9f-aaaaa": "worker-7d9f-", "other-1": "other-"}, [0]),
        ("worker-7d9f-x2x4k", {"worker-88aa-bbbbb": "worker-88aa-", "bare": ""}, [0]),
        ("worker-7d9f-x2x4k", {"other-1": "other-"}, []),
        ("web", {"web-1": "web-"}, []),
    ],
)
def test_pods_made_like_one_that_is_gone_are_found(
    gone: str, pods: Mapping[str, str], expected: list[int]
) -> None:
    """Those of its own template, then those of the Deployment's next one; a short name has none."""
    assert tuple([*pods][at] for at in expected) == made_like(gone, pods.items())


@pytest.mark.parametrize(
    ("about", "kind", "expected"),
    [
        ("n/Deployment/worker", "Deployment", True),
        ("n/ReplicaSet/worker-5b7f9c6d8", "Deployment", True),
        ("n/Pod/worker-5b7f9c6d8-x2x4k", "Deployment", True),
        ("n/Pod/worker-29", "StatefulSet", True),
        ("n/Pod/workers", "Deployment", False),
        ("n/Pod/worker-b-5b7f9c6d8-x2x4k", "Deployment", False),
        ("n/Pod/worker-eval-0", "StatefulSet", False),
        ("n/Pod/worker-head-x2x4k", "RayCluster", True),
    ],
)
def test_an_event_is_about_an_owner_by_its_name(about: str, kind: str, *, expected: bool) -> None:
    """What a Deployment has made has its name and a hash; another one's longer name is not that."""
    assert expected == is_about(SAID._replace(about=about), kind, "worker")
