"""Owners of GPU pods in every state that `idle` and `release --dry-run` show."""

from dataclasses import replace
from typing import Any

from gpufence.idle import ReleaseNote, ReleasePhase
from gpufence.quantity import GIB, MIB
from gpufence.releases import OwnerRelease, OwnerReleases
from gpufence.snapshot import PodActivityRow, PodRow
from kube.kinds import ApiKind
from kube.owners import ApiOwner
from kubectl_gpufence.verbs.idle.lines import OwnedPod, SeenOwners
from tests.support.plugin import NODE, pod_row, seen_pod, snapshot, use_row

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
