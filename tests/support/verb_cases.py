"""Clusters for `doctor`, `idle`, `release` and `recommend`, in every state that these show."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpufence import names
from gpufence.dialects import Units
from gpufence.idle import OwnerRelease, OwnerReleases, ReleaseNote, ReleasePhase
from gpufence.need import Confidence, NeedKey, NeedSummary
from gpufence.quantity import GIB, MIB
from gpufence.records import EVICTED, Moment, Neighbour, Record, Threshold
from gpufence.shape import Object
from gpufence.snapshot import PodActivityRow, PodRow
from kube.kinds import ApiKind
from kube.owners import ApiOwner
from kubectl_gpufence.cluster_view import by_node
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.verbs.doctor.installation import (
    HOOKS,
    POLICIES,
    Installation,
    LabelledNamespace,
    MaybeHidden,
)
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.verbs.idle.lines import OwnedPod, SeenOwners
from kubectl_gpufence.verbs.recommend import patch_lines
from kubectl_gpufence.verbs.recommend.lines import NEED_FIELDS, chosen, need_listing
from kubectl_gpufence.verbs.recommend.patches import NodeWords, OwnerPatch, patch_of
from kubectl_gpufence.view import Display, Rows, csv_lines, records
from tests.support.builders import NEED_KEY, need_summary
from tests.support.plugin import (
    NODE,
    agent,
    card_row,
    pod_row,
    raw_pod,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)

NOW = 1_800_000_000.0
DAY = 86_400.0
HIDDEN: MaybeHidden[Any] = MaybeHidden(hidden="you may not see it")
YEARS = ((NOW - DAY, NOW + 3650 * DAY),)


def version(text: str) -> MaybeHidden[Any]:
    return MaybeHidden({"gitVersion": text})


def deployment(ready: int | None, wanted: int | None = 2) -> MaybeHidden[Any]:
    return MaybeHidden({"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}})


def slices(ready: int, unready: int = 0) -> MaybeHidden[Any]:
    states = [True] * ready + [False] * unready
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": item}} for item in states]
    return MaybeHidden([{"endpoints": endpoints}])


def configuration(*hooks: str, failure: str = "Ignore") -> MaybeHidden[Any]:
    return MaybeHidden({"webhooks": [{"name": name, "failurePolicy": failure} for name in hooks]})


def healthy() -> Installation:
    there: dict[str, MaybeHidden[Any]] = {name: MaybeHidden({}) for name in POLICIES}
    return Installation(
        now=NOW,
        version=version("v1.37.1"),
        rights={"list pods": True, "list nodes": True},
        system=MaybeHidden({}),
        deployment=deployment(2),
        slices=slices(2),
        configuration=configuration(*HOOKS),
        trusted=dict.fromkeys(HOOKS, YEARS),
        serving={"gpufence-webhook-a": 60 * DAY},
        policies=there,
        bindings=there,
        switch=MaybeHidden({"data": {"max-mode": "evict"}}),
        nodes=MaybeHidden(
            {"gpu-1": seen_node(), "cpu-1": replace(seen_node("cpu-1"), gpu=None, cards=None)}
        ),
        agents=MaybeHidden(by_node([agent(snapshot())])),
        namespaces=MaybeHidden(
            [LabelledNamespace("team-a", "evict"), LabelledNamespace("default", None)]
        ),
        pods=MaybeHidden([seen_pod()]),
        tried=MaybeHidden(value=True),
        quotas=MaybeHidden(["team-a"]),
    )


def starting() -> Installation:
    """Build what is there some seconds after an installation, when nothing is up yet."""
    agents = (agent(None, "its pod is not ready", ready=False),)
    return replace(
        healthy(),
        deployment=deployment(0),
        slices=slices(0),
        trusted=dict.fromkeys(HOOKS, ()),
        serving={"gpufence-webhook-a": None},
        nodes=MaybeHidden({"gpu-1": replace(seen_node(), cards=None), "gpu-2": seen_node("gpu-2")}),
        agents=MaybeHidden(by_node(agents)),
        pods=MaybeHidden([]),
        young=True,
        young_nodes=frozenset({NODE}),
    )


def bare() -> Installation:
    nothing: dict[str, MaybeHidden[Any]] = {name: MaybeHidden() for name in POLICIES}
    return Installation(
        now=NOW,
        version=version("v1.29.4"),
        slices=MaybeHidden([]),
        policies=nothing,
        bindings=nothing,
        nodes=MaybeHidden({}),
        agents=MaybeHidden({}),
        namespaces=MaybeHidden([]),
        pods=MaybeHidden([]),
    )


def sick() -> Installation:
    """Everything is there, and nothing as it should be."""
    broken = raw_pod(name="damaged", uid="u2")
    broken["metadata"]["annotations"][names.PLAN] = "{"
    trusted = {HOOKS[0]: (), HOOKS[1]: None, HOOKS[2]: ((NOW - 2 * DAY, NOW - DAY),)}
    agents = (
        agent(snapshot(fresh=False, brake="just started", cards=(card_row(trouble="lost"),))),
        agent(snapshot(stale_seconds=200.0), node="gpu-2"),
        agent(None, "its pod is not ready", node="gpu-0", ready=False),
        agent(snapshot(stale_seconds=None), node="gpu-3"),
        agent(snapshot(trouble="no driver", cards=()), node="gpu-4"),
        agent(None, "it does not answer in time", node="gpu-5"),
        agent(None, "you may not ask agents", node="gpu-6", denied=True),
        agent(snapshot(), node="gpu-7"),
        agent(snapshot(), node="gpu-8"),
    )
    nodes = {f"gpu-{place}": seen_node(f"gpu-{place}") for place in range(1, 10)}
    nodes["gpu-8"] = replace(nodes["gpu-8"], cards=None)
    nodes["gpu-7"] = replace(nodes["gpu-7"], cards=None, cards_trouble="cannot be read")
    return replace(
        healthy(),
        version=version("v1.33.0-gke.1"),
        rights={"list pods": True, "list nodes": False},
        deployment=deployment(1),
        slices=slices(0, 1),
        configuration=configuration(*HOOKS[:3], failure="Fail"),
        trusted=trusted,
        serving={"a": None, "b": -1.0, "c": DAY},
        policies={POLICIES[0]: MaybeHidden({}), POLICIES[1]: MaybeHidden()},
        bindings={POLICIES[0]: MaybeHidden(), POLICIES[1]: MaybeHidden()},
        switch=MaybeHidden({"data": {"max-mode": "shout"}}),
        nodes=MaybeHidden(nodes),
        agents=MaybeHidden(by_node(agents)),
        namespaces=MaybeHidden(
            [LabelledNamespace("team-a", "evict"), LabelledNamespace("team-b", "Evict")]
        ),
        pods=MaybeHidden([seen_pod(mode=None), see_pod(broken, None)]),
    )


def denied() -> Installation:
    """Nothing may be seen."""
    hidden: dict[str, MaybeHidden[Any]] = dict.fromkeys(POLICIES, HIDDEN)
    return Installation(
        now=NOW,
        version=version(""),
        system=HIDDEN,
        deployment=HIDDEN,
        slices=HIDDEN,
        configuration=HIDDEN,
        policies=hidden,
        bindings=hidden,
        switch=HIDDEN,
        nodes=HIDDEN,
        agents=HIDDEN,
        namespaces=HIDDEN,
        pods=HIDDEN,
    )


AT = 1_900_000_000.0
DEPLOYMENT = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)
JOB = ApiKind("batch/v1", "Job", "jobs")
BUSY = PodActivityRow("busy", 0.0, "Busy", busy_share=0.5)
UNTOUCHED = PodActivityRow("idle", 5400.0, "NoKernels", busy_share=0.0)
UNMEASURED = PodActivityRow("unknown", None, "NotMeasurable", "MPS is on the card")


def idle(seconds: float) -> PodActivityRow:
    return PodActivityRow("idle", seconds, "NoKernels", busy_share=0.0)


def api_owner(name: str, kind: ApiKind = DEPLOYMENT, replicas: int | None = 1) -> ApiOwner:
    return ApiOwner(kind, "team-a", name, f"uid-of-{name}", "7", {}, replicas=replicas)


def owned(owner: ApiOwner, name: str, node: str = NODE) -> OwnedPod:
    """Build a pod of an owner; on no node it waits."""
    pod = replace(seen_pod(name=name, uid=name), node=node)
    return OwnedPod(pod, owner, waits=not node)


def measured(name: str, activity: PodActivityRow | None, *held: int | None) -> PodRow:
    """Build what an agent says of a pod that holds so much on each of its cards."""
    uses = tuple(use_row(amount, card=f"GPU-{index}") for index, amount in enumerate(held))
    return pod_row(uid=name, name=name, activity=activity)._replace(uses=uses)


def said(owner: ApiOwner, **what: Any) -> OwnerRelease:
    """Build what the controller says of an owner."""
    kind = owner.kind
    release = OwnerRelease(owner.namespace, kind.api_version, kind.kind, owner.name, way="scale")
    return release._replace(rung="release", replicas=owner.replicas, **what)


WORKER, CLAIMER, TRAINER, SERVER, NEW, JOB_OWNER = (
    api_owner("worker", replicas=2),
    api_owner("claimer"),
    api_owner("trainer"),
    api_owner("server"),
    api_owner("new"),
    api_owner("both-cards", JOB, None),
)
GONE = ReleaseNote(ReleasePhase.RELEASED, AT - 300, 2, "nobody used it")


def alone() -> SeenOwners:
    """Build what is known without a controller."""
    pods = (
        owned(WORKER, "worker-1"),
        owned(WORKER, "worker-2"),
        owned(CLAIMER, "claimer-1"),
        owned(TRAINER, "trainer-1"),
        owned(SERVER, "server-1"),
        owned(NEW, "new-1", "gpu-2"),
        owned(JOB_OWNER, "both-cards-x", ""),
    )
    rows = (
        measured("worker-1", idle(3000.0), 3 * GIB + 1),
        measured("worker-2", idle(7200.0), 2 * GIB, 512 * MIB),
        measured("claimer-1", UNTOUCHED),
        measured("trainer-1", BUSY, 9 * GIB),
        measured("server-1", UNMEASURED, GIB),
    )
    return SeenOwners(pods, {NODE: snapshot(*rows)}, notes=("no controller runs",))


def led() -> SeenOwners:
    """Build the same with what the controller says of it."""
    waiter = ("team-a/both-cards-x",)
    why = "all its pods have been idle since 2030-03-17T16:55:40Z"
    owners = (
        said(
            WORKER,
            state="idle",
            step="announce",
            why=why,
            deadline=AT + 25,
            contended=True,
            waiters=waiter,
            pods=2,
        ),
        said(CLAIMER, state="idle", why=f"{why}; nothing is done at it", deadline=AT)._replace(
            rung="warn"
        ),
        said(TRAINER, state="busy", why="pod trainer-1 uses its GPU"),
        said(SERVER, state="kept", why="it is to be kept until 2030-03-18T06:00:00Z"),
        said(api_owner("gone", replicas=0), state="released", note=GONE),
        said(api_owner("damaged", replicas=0), state="released"),
    )
    return alone()._replace(releases=OwnerReleases(leader=True, at=AT, owners=owners), notes=())


TERMINAL: Display = Display(width=100)
DOCTORED = ("healthy", "starting", "bare", "sick", "denied")


def recommended() -> list[NeedSummary]:
    """Build needs of every confidence, and what stands against a target."""
    plain = need_summary()
    batch = NeedKey("vision", "CronJob", "nightly", "train", "NVIDIA A100-SXM4-40GB")
    return [
        plain,
        need_summary(
            key=batch,
            peak_bytes=11 * GIB,
            target_bytes=16_384 * MIB,
            limit_bytes=12 * GIB,
            confidence=Confidence.MEDIUM,
            evictions=2,
            out_of_memory=1,
        ),
        need_summary(
            key=NEED_KEY._replace(name="tagger"),
            target_bytes=None,
            capped=True,
            limit_bytes=6 * GIB,
        ),
        need_summary(
            key=NeedKey("speech", "Job", "once", "main", "Tesla T4"),
            target_bytes=None,
            confidence=Confidence.LOW,
            held_seconds=4000.0,
            limit_bytes=None,
        ),
        need_summary(
            key=NeedKey("speech", "ReplicaSet", 'web", "7d9', "main", "Tesla T4"),
            target_bytes=None,
            confidence=Confidence.LOW,
        ),
    ]


def patched() -> list[OwnerPatch]:
    """Patch an owner that counts in units of gpushare, and one that asks for a card."""
    words = NodeWords(Units(), 15 * GIB)
    server = {"name": "server", "resources": {"limits": {names.GPUSHARE_MEMORY: "8"}}}
    train = {"name": "train", "resources": {"limits": {names.NVIDIA_GPU: "1"}}}
    templates = [{"template": {"spec": {"containers": [each]}}} for each in (server, train)]
    raw: list[Object] = [
        {"spec": templates[0]},
        {"spec": {"jobTemplate": {"spec": templates[1]}}},
    ]
    made = (patch_of([recommended()[at]], raw[at], words)[0] for at in range(2))
    return [patch for patch in made if patch is not None]


def needs(namespace: str) -> Rows[NeedSummary]:
    return need_listing(chosen(recommended(), namespace), namespace, "agents", ())


def capped_record() -> PodRecord:
    """Return a pod in a crash loop at its cap, whose words have escape sequences behind them."""
    free = "GPU 0 has a total capacity of 14.58 GiB of which 11.23 GiB is free. \x1b[2J"
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-02T03:04:05Z"}
    ended["message"] = f"CUDA out of memory. Tried to allocate 2.00 GiB. {free}"
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    states = {"state": waiting, "lastState": {"terminated": ended}}
    raw = raw_pod()
    raw["status"]["containerStatuses"] = [{"name": "trainer", "restartCount": 7, **states}]
    pod = see_pod(raw, seen_node().gpu)
    return PodRecord(pod, "evict")


def bursting() -> list[NeedSummary]:
    """Return needs of which two would do with less for most of the time."""
    first, second, *rest = recommended()
    return [first._replace(request_bytes=2 * GIB), second._replace(request_bytes=6 * GIB), *rest]


NEED_CASES: dict[str, Callable[[], list[str]]] = {
    "recommend-typical": lambda: needs("").table(Display(width=120), wide=False),
    "recommend-burst": lambda: need_listing(bursting(), "", "", ()).table(TERMINAL, wide=False),
    "recommend-one": lambda: needs("vision").table(TERMINAL, wide=False),
    "recommend-csv": lambda: csv_lines(NEED_FIELDS, recommended()),
    "recommend-json": lambda: json.dumps(
        records(NEED_FIELDS, recommended())[1], indent=2
    ).splitlines(),
    "recommend-patch": lambda: patch_lines(patched(), together=False),
    "recommend-kustomize": lambda: patch_lines(patched(), together=True),
}


ENDED = Record(
    EVICTED,
    "2026-11-20T07:01:02Z",
    "uid",
    "team-a",
    "worker-7f9c-x",
    "Deployment/worker",
    "ReplicaSet/worker-7f9c",
    card="GPU-0",
    model="Tesla T4",
    total_bytes=15 * GIB,
    used_bytes=3900 * MIB,
    peak_bytes=3900 * MIB,
    limit_bytes=3 * GIB,
    enough_bytes=5568 * MIB,
    over_seconds=45.0,
    hold_seconds=30.0,
    free_bytes=4000 * MIB,
    owed_bytes=2 * GIB,
    neighbours=(Neighbour(GIB, 3 * GIB),),
    thresholds=(Threshold("limit", 3 * GIB, 90.0), Threshold("evict", 3328 * MIB, 45.0)),
    course=tuple(
        Moment(
            age, 1124 if age > 200 else 2100 if age > 90 else 3140 if age > 45 else 3900, 3072, 9
        )
        for age in range(600, -1, -5)
    ),
)
