"""PURE. Who is busy and who is idle on a card, and what is remembered to tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.quantity import MIB
from gpufence.settings import setting
from gpufence.snapshot import BUSY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.pod import PodsOnNode
    from agent.model.use import CpuTime, Occupant, UseKey


class Activity(StrEnum):
    """What a pod does on a card; unknown is never idle."""

    BUSY = BUSY
    IDLE = "idle"
    UNKNOWN = "unknown"


class Evidence(StrEnum):
    """Why; the reasons of the pod's condition are the same."""

    KERNELS = "Busy"  # the card was used
    LOADING = "Loading"  # memory moved, or processes came and went
    CPU = "CPUBusy"  # the processes that use the card used the CPU
    NOTHING = "NoKernels"  # nothing of these
    NOT_MEASURABLE = "NotMeasurable"  # nobody can tell


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityPolicy:
    """What counts as work, and for how long there must be none."""

    interval_seconds: float = field(
        default=5.0,
        metadata=setting(
            "GPUFENCE_ACTIVITY_SECONDS",
            "interval at which each card's activity is read; after three of them without an "
            "answer its pods are unknown",
            least=0.05,
            most=60,
        ),
    )
    idle_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_IDLE_SECONDS",
            "idle time after which the condition `gpufence.io/GPUIdle` of a pod is true",
            least=0.1,
            most=86400,
        ),
    )
    mean_seconds: float = field(
        default=60.0,
        metadata=setting(
            "GPUFENCE_BUSY_MEAN_SECONDS",
            "period over which the share of time at work is averaged",
            least=1,
            most=3600,
        ),
    )
    moved_bytes: int = 64 * MIB
    """A pod whose use of memory moved by as much is loading or letting go."""

    cpu_share: float = 0.05
    """Of a core, for all of the pod's processes on the card: a loop that waits takes less."""

    hidden_percent: float = 5.0
    hidden_seconds: float = 30.0
    """
    A card that is so busy for so long while no process is, has a process that the driver hides.
    """

    @property
    def work_seconds(self) -> float:
        """Return how often the sampler is to ask what was done on each card."""
        return self.interval_seconds

    @property
    def gap_seconds(self) -> float:
        return 3 * self.interval_seconds


class Witness(NamedTuple):
    """
    What the kernel says at a moment: of processes on cards what they have used of the CPU, and who
    those workers are that no list names yet.
    """

    at: float
    cpu: Mapping[int, CpuTime]
    strangers: Mapping[int, Occupant]


class Track(NamedTuple):
    """
    One pod on one card. `idle_since` is the end of the last thing it did, as far as it was watched
    without a hole; None before that.

    `share` is how much of the last answer it worked, with the card or its processes with the CPU.

    `processes`, `used_bytes` and `cpu` are what the next look is compared with; `cpu_at` is when
    the kernel said so. `used_bytes` is what it held when that last moved, `last_bytes` what it held
    in the last look.
    """

    activity: Activity = Activity.UNKNOWN
    evidence: Evidence = Evidence.NOT_MEASURABLE
    why: str = ""
    idle_since: float | None = None
    busy_seconds: float = 0.0
    share: float = 0.0
    used_bytes: int = 0
    processes: frozenset[tuple[int, int]] = frozenset()
    cpu: Mapping[int, CpuTime] = {}
    cpu_at: float = 0.0
    last_bytes: int = 0

    def idle_seconds(self, now: float) -> float | None:
        """Return for how long it has done nothing: 0 while it is busy, None where nobody knows."""
        return _idle_seconds(self.activity, self.idle_since, now)


class CardTrack(NamedTuple):
    """
    One card: until when it was watched without a hole, what it held then, and since when it is busy
    while nobody is.

    `since` is when the last answer begins, `working` the pods that worked in it and for which share
    of it. `clear_since` is since when nothing was done there by somebody who might be anybody, and
    `doubt` what may be.
    """

    until: float
    used_bytes: int = 0
    hidden_since: float | None = None
    since: float = 0.0
    working: Mapping[str, float] = {}
    clear_since: float = 0.0
    doubt: str = ""


class Span(NamedTuple):
    """A share of a time in which a card was used."""

    since: float
    until: float
    card: str
    share: float = 1.0


class PodTrack(NamedTuple):
    """
    One pod on all cards of its node together; `idle_since` is as a `Track`'s, the latest of all.

    `held` are the cards where it holds memory. `used` is when it used which card in the last while,
    as far back as `known_since`, and `busy_share` how much of that time it used the one it used
    most.
    """

    activity: Activity = Activity.UNKNOWN
    evidence: Evidence = Evidence.NOT_MEASURABLE
    why: str = ""
    idle_since: float | None = None
    held: frozenset[str] = frozenset()
    used: tuple[Span, ...] = ()
    known_since: float | None = None
    busy_share: float | None = None

    def idle_seconds(self, now: float) -> float | None:
        """Return for how long it has done nothing: 0 while it is busy, None where nobody knows."""
        return _idle_seconds(self.activity, self.idle_since, now)


class NodeDoubt(NamedTuple):
    """
    What holds on a node for pods without memory there: `trouble` is a card that is not watched,
    `doubt` work that nobody is known by, the last of which ended at `clear_since`.
    """

    trouble: str
    doubt: str
    clear_since: float


@dataclass(frozen=True, slots=True)
class ActivityMemory:
    """
    All of it; a new agent begins with nothing, and so knows of nobody that he is idle. `node` and
    `index` are what `pods` was worked out with.
    """

    cards: Mapping[str, CardTrack] = field(default_factory=dict)
    tracks: Mapping[UseKey, Track] = field(default_factory=dict)
    pods: Mapping[str, PodTrack] = field(default_factory=dict)
    node: NodeDoubt | None = None
    index: PodsOnNode | None = None


NO_ACTIVITY: Final = ActivityMemory()


class IdleStatus(StrEnum):
    """The values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


def _idle_seconds(activity: Activity, since: float | None, now: float) -> float | None:
    if activity is Activity.UNKNOWN or since is None:
        return None
    return max(now - since, 0.0) if activity is Activity.IDLE else 0.0
