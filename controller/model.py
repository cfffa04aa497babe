"""
PURE. Owners of GPU pods as the controller sees them, who waits, what is decided about them, and by
which rules.

Moments are seconds since the epoch, as the API server's clock writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gpufence.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.idle import IdleRung, IdleWords, ReleaseNote
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod


class OwnerKey(NamedTuple):
    """
    The topmost owner whose replicas count: a ReplicaSet's Deployment, a StatefulSet, a Notebook.
    """

    namespace: str
    api_version: str
    kind: str
    name: str


class Way(StrEnum):
    """How an owner is released."""

    SCALE = "scale"  # its scale subresource
    NOTEBOOK = "notebook"  # Kubeflow's stop annotation
    WORKLOAD = "workload"  # Kueue's spec.active, of the Workload that admits it
    NEVER = "never"


class PodState(NamedTuple):
    """
    One living pod. `idle` is the status of `gpufence.io/GPUIdle` (empty: none), `idle_at` its last
    transition. `requests` are what it asks for of each GPU resource, as the scheduler adds it
    up; `pods` is 1. `waiting_since` is set while no node takes it.
    `ready_at` is None while it is not ready. `placement` names what else decides where it may run
    and is not worked out here: a required pod affinity or anti-affinity, a hard topology spread,
    host ports, volumes that are bound to places. `leader` is the UID of the pod that controls it
    and others, which all together are one replica of their owner. `initializing`: its init
    containers run.
    """

    uid: str
    namespace: str
    name: str
    owner: OwnerKey | None
    node: str
    phase: str
    priority: int
    requests: Mapping[str, int]
    gpu: Pod | None  # None: it has nothing to do with GPUs, and only takes room
    terminating: bool = False
    initializing: bool = False
    ready_at: float | None = None
    waiting_since: float | None = None
    idle: str = ""
    idle_at: float | None = None
    tolerations: tuple[Mapping[str, str], ...] = ()
    placement: str = ""
    leader: str = ""


class OwnerState(NamedTuple):
    """
    An owner with all its living pods, those without a GPU included. `way` NEVER has a `why_not`
    that a person can read: an HPA or a ScaledObject scales it (named), a bare pod, a DaemonSet, a
    system priority, a Job, a note that cannot be read.

    `replicas` is what its spec wants; None where nobody knows. `uid` and `version` are the
    preconditions of an act. `rung` is the lower of the namespace's label and the kill switch; None
    where the namespace says nothing. `template` is one more replica as the owner would make it,
    on no node yet; None where nobody knows. `budget` is how many of its pods may go at once by the
    PodDisruptionBudgets that cover them (the least `disruptionsAllowed`); None: none does.
    `unsure` says why not all of its pods may be known, or not what it wants now; then `way` is
    NEVER.
    """

    key: OwnerKey
    uid: str
    version: str
    way: Way
    why_not: str = ""
    replicas: int | None = None
    pods: tuple[PodState, ...] = ()
    words: IdleWords | None = None
    rung: IdleRung | None = None
    note: ReleaseNote | None = None
    template: PodState | None = None
    budget: int | None = None
    unsure: str = ""


class NodeRoom(NamedTuple):
    """A GPU node: what it offers of GPU resources and places for pods (allocatable), its taints."""

    node: GpuNode
    allocatable: Mapping[str, int]
    taints: tuple[Mapping[str, str], ...] = ()
    unschedulable: bool = False


class ClusterState(NamedTuple):
    """
    Everything at one moment. `fresh` is False while any watch is not synced or has heard nothing
    for too long: then nothing is done. `pods` are all living pods on GPU nodes and all that wait.
    """

    now: float
    fresh: bool
    owners: Mapping[OwnerKey, OwnerState]
    pods: tuple[PodState, ...]
    nodes: Mapping[str, NodeRoom]


class Step(StrEnum):
    NOTHING = "nothing"
    ANNOUNCE = "announce"
    RELEASE = "release"  # after a last look at the agents
    WAKE = "wake"  # note, scale to what the note says, note
    NOTE_WOKEN = "note-woken"  # it has replicas again: write that down
    NOTE_RELEASED = "note-released"  # the act was cut short after the scaling: finish the note
    DROP_NOTE = "drop-note"  # the act was cut short before the scaling: as if nothing had been


class Standing(NamedTuple):
    """
    One owner at one moment: what `/v1/owners` shows and what is done about it. `state` is `busy`,
    `idle`, `unknown`, `released` or `kept`. `why` says in a sentence what stands against a release,
    or what it is for. `deadline` is when it goes; `waiters` are `namespace/name` of those who wait
    for its GPUs.
    """

    key: OwnerKey
    step: Step
    state: str
    why: str
    idle_since: float | None = None
    deadline: float | None = None
    contended: bool = False
    waiters: tuple[str, ...] = ()


class Announcement(NamedTuple):
    """When it was said of an owner that it goes, and at which deadline."""

    at: float
    deadline: float


class NoticeGiven(NamedTuple):
    """
    What was said of an owner: of the time that it has by itself, which no waiter puts off, and of
    the one that it has while somebody waits for its GPUs.
    """

    usual: Announcement | None = None
    contended: Announcement | None = None


Announcements: TypeAlias = "Mapping[str, NoticeGiven]"
"""By the UID of the owner: one that is made again under its name has been told nothing."""


class Act(NamedTuple):
    """
    What a person is told, and what the shell carries out, as long as the owner still has the
    `uid` and `version` (resourceVersion) it was decided on.

    `note` is written first (RELEASING, WAKING), then the replicas change, then `done` is written;
    acts on a note alone have `note` only, and None removes it. `message` may be empty: no Event.
    """

    step: Step
    key: OwnerKey
    reason: str  # an Event's reason
    message: str
    note: ReleaseNote | None = None
    done: ReleaseNote | None = None
    replicas: int | None = None  # what the owner is scaled to; None: its replicas stay
    threshold_seconds: float = 0.0  # RELEASE: how long all its pods must have been idle
    uid: str = ""
    version: str = ""


class Objection(NamedTuple):
    """When the last look spoke against a release, and why."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class ReleaseMemory:
    """
    What the leader remembers from pass to pass; a new leader begins without, and announces anew.

    `released` and `refused` are what became of acts, which the shell says by `released` and
    `refused` of `controller.decide`.
    """

    began: float | None = None  # the first pass; None: this is it
    announced: Announcements = field(default_factory=dict)
    released: Mapping[OwnerKey, float] = field(default_factory=dict)  # when, for the rate
    refused: Mapping[OwnerKey, Objection] = field(default_factory=dict)
    suspended_until: float = 0.0
    idle: frozenset[str] = frozenset()  # UIDs of pods that were so when it was last known
    turned_idle: Mapping[str, float] = field(default_factory=dict)  # by pod UID: when
    free_since: Mapping[OwnerKey, float] = field(default_factory=dict)  # for when-free


class ReleaseDecision(NamedTuple):
    """`acts` in the order in which they are to be carried out."""

    standings: Mapping[OwnerKey, Standing]
    acts: tuple[Act, ...]
    memory: ReleaseMemory
    brake: str = ""


class LastLook(NamedTuple):
    """What the agents say of all pods of an owner just before an act."""

    idle_seconds: float | None  # the least of all; None: one is busy or unknown
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRules:
    """When an owner is released, and what stands against it."""

    idle_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_IDLE_SECONDS",
            "idle time after which the condition `gpufence.io/GPUIdle` is true: as the agents' "
            "variable of this name",
        ),
    )
    after_seconds: float = field(
        default=900.0,
        metadata=setting(
            "GPUFENCE_RELEASE_AFTER_SECONDS",
            "idle time of all pods of an owner before it is released, without "
            "`gpufence.io/idle-after`",
            most=30 * 86400,
        ),
    )
    least_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_RELEASE_LEAST_SECONDS",
            "smallest valid `gpufence.io/idle-after` and `gpufence.io/idle-after-contended`",
        ),
    )
    notice_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_RELEASE_NOTICE_SECONDS",
            "time between announcement and release; at most half of the required idle time",
        ),
    )
    warm_up_seconds: float = field(
        default=900.0,
        metadata=setting(
            "GPUFENCE_RELEASE_WARM_UP_SECONDS",
            "time after its youngest pod became ready in which an owner is not released",
        ),
    )
    peace_seconds: float = field(
        default=1800.0,
        metadata=setting(
            "GPUFENCE_RELEASE_PEACE_SECONDS",
            "time after it was scaled up in which an owner is not released again",
        ),
    )
    free_seconds: float = field(
        default=300.0,
        metadata=setting(
            "GPUFENCE_RELEASE_FREE_SECONDS",
            "how long no pod waits and an owner fits before `gpufence.io/wake: when-free` scales "
            "it up",
        ),
    )
    waiting_seconds: float = field(
        default=30.0,
        metadata=setting(
            "GPUFENCE_RELEASE_WAITING_SECONDS",
            "how long a pod is unschedulable before it counts as waiting",
        ),
    )
    per_minute: int = field(
        default=3,
        metadata=setting(
            "GPUFENCE_RELEASE_PER_MINUTE",
            "most releases in a minute",
            most=1000,
        ),
    )
    suspend_percent: float = field(
        default=80.0,
        metadata=setting(
            "GPUFENCE_RELEASE_SUSPEND_PERCENT",
            "share of all measured pods that turn idle at once at which releases are suspended",
            most=100,
        ),
    )
    suspend_pods: int = field(
        default=5,
        metadata=setting(
            "GPUFENCE_RELEASE_SUSPEND_PODS",
            "fewest measured pods for a suspension",
            least=2,
            most=10000,
        ),
    )
    suspend_within_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_RELEASE_SUSPEND_WITHIN_SECONDS", "period that counts as at once", least=1
        ),
    )
    suspend_seconds: float = field(
        default=3600.0,
        metadata=setting("GPUFENCE_RELEASE_SUSPEND_SECONDS", "duration of a suspension"),
    )
    contest_seconds: float = field(
        default=600.0,
        metadata=setting(
            "GPUFENCE_RELEASE_CONTEST_SECONDS",
            "an owner that is scaled up within this time of its release contests it",
        ),
    )
    left_alone_seconds: float = field(
        default=86400.0,
        metadata=setting(
            "GPUFENCE_RELEASE_LEFT_ALONE_SECONDS",
            "how long an owner is left alone after two contests in that time",
            most=30 * 86400,
        ),
    )
