"""
PURE. What the judge decides in one tick: for every fenced pod and card what is done, and why.

The same value feeds evictions, events, metrics, logs and the snapshot. Last comes what became of an
act, told by what carries it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.pod import PodOnNode
    from agent.model.use import CardUse, PodOnCard


UNJUDGED_SECONDS: Final = 10.0
"""A card on which no pod could be judged for so long says so."""


class Outcome(StrEnum):
    """Why a pod is acted on or not, from harmless to final."""

    IDLE = "idle"  # holds no memory on any card
    UNKNOWN = "unknown"  # its use, or part of it, cannot be read
    UNDECLARED = "undeclared"  # nothing says what it may hold
    WITHIN = "within"  # at most its limit and the report margin
    BORROWING = "borrowing"  # above its request, within its limit, and no other pod misses it
    RECALLED = "recalled"  # the same, and missed: evicted in a while unless it is given back
    UNCONFIRMED = "unconfirmed"  # over only by processes whose PID was another's in the list before
    TOLERATED = "tolerated"  # over its limit, by less than the margin for eviction
    NOT_RENEWED = "not renewed"  # over in a list of the past; the next one decides
    MPS = "mps"  # its memory is that of clients of the node's MPS server
    NOT_ENFORCED = "not enforced"  # an implied limit in a namespace that did not ask for those
    EXEMPT = "exempt"  # never evicted, whatever it holds
    ONLY_WHEN_SHORT = "only when short"  # by the operator's word, while no neighbour is hurt
    UNINJECTED = "uninjected"  # the webhook never saw it: evicted only to cure a shortage
    OTHER_CARD = "other card"  # keeps to a fraction that it was told of a smaller card: likewise
    GRACE = "grace"  # just started
    HOLDING = "holding"  # not over for long enough
    WOULD_EVICT = "would evict"  # in evict mode it would go now
    TERMINATING = "terminating"  # is going already
    BRAKED = "braked"  # would go now, but for a brake
    BACKING_OFF = "backing off"  # its eviction was refused a moment ago
    QUEUED = "queued"  # would go now, but another one goes first
    STUCK = "stuck"  # over, and does not end, or is too large for the API to end it
    EVICT = "evict"  # goes now


class Brake(StrEnum):
    """What stops evictions that are due otherwise."""

    START = "the agent has just started"
    STALE_PODS = "the API server is out of reach"
    SUSPENDED = "more than half of the pods of one dialect and unit are over their limits at once"
    TERMINATING = "another pod on the card is terminating"
    NODE_CAP = "this node has had its evictions of the minute"
    NAMESPACE_CAP = "the namespace has had its evictions of the minute on this node"


class Action(StrEnum):
    """How a pod is made to go."""

    EVICT = "evict"  # the Eviction API
    EVICT_JOB = "evict-job"  # allowed as an Eviction, then deleted: it counts as a failure
    DELETE = "delete"  # a budget has shielded it for long enough
    KILL = "kill"  # its processes, since the API cannot hurry it


@dataclass(frozen=True, slots=True)
class Ineffective:
    """A process that holds more than its framework was told it may."""

    container: str
    pid: int
    used_bytes: int
    allowed_bytes: int


@dataclass(frozen=True, slots=True)
class ContainerExcess:
    """A container over its part of the pod's limit."""

    container: str
    used_bytes: int
    part_bytes: int


class Verdict(NamedTuple):
    """
    One fenced pod on one card; a pod that holds nothing has one verdict, on no card.

    `over_seconds` says for how long the report threshold has been passed. `due_seconds` is the
    least time over that is still missing, where time is all that is, and `due_at` when it is over,
    or begins to count, for a pod that goes on as it does. `by_shortage` marks a verdict
    that only the shortage of the card makes due, `recalled` one for what the pod borrows.
    `told_larger_bytes` is how large the card is whose fractions a pod keeps to that runs on this
    one.
    """

    pod: PodOnNode
    outcome: Outcome
    use: PodOnCard | None = None
    over_seconds: float = 0.0
    due_seconds: float | None = None
    due_at: float = math.inf
    by_shortage: bool = False
    recalled: bool = False
    brake: Brake | None = None
    action: Action | None = None
    containers_over: tuple[ContainerExcess, ...] = ()
    ineffective: tuple[Ineffective, ...] = ()
    told_larger_bytes: int | None = None

    @property
    def uuid(self) -> str:
        """Return the card's UUID; nothing for a verdict on no card."""
        return "" if self.use is None else self.use.card.uuid

    @property
    def limit_bytes(self) -> int | None:
        return None if self.use is None else self.use.limit_bytes

    @property
    def over(self) -> bool:
        """Return whether the report threshold is passed for certain."""
        return self.use is not None and self.use.report_over is True

    @property
    def short(self) -> bool:
        return self.use is not None and self.use.short


class Blame(NamedTuple):
    """
    Who holds memory that others on the card were promised, and is not to be evicted for it; no pod
    for processes of no pod, or memory that no process shows where it is `hidden`. `above` is which
    of the pod's figures it is above.
    """

    held_bytes: int
    pod: PodOnNode | None = None
    hidden: bool = False
    above: str = "limit"


class Shortage(NamedTuple):
    """
    What a card lacks of what its pods were promised, or of the floor; nothing that idle pods lend.

    `curing` are the pods whose eviction ends it, by UID; without any, `cause` says what stands
    behind it. `coming` is what leaving pods will give back, by namespace, under no namespace where
    we have evicted them ourselves. `recalled_bytes` is what of it borrowers may be asked for, and
    `recalled` those of them whose eviction gives it back.
    """

    missing_bytes: int
    curing: frozenset[str]
    cause: Blame | None = None
    coming: tuple[tuple[str, int], ...] = ()
    recalled_bytes: int = 0
    recalled: frozenset[str] = frozenset()


class Suspension(NamedTuple):
    """
    So many of the holding pods of one measure are over their limits that the measure is mistrusted.
    """

    measure: str
    violating: int
    holding: int


@dataclass(frozen=True, slots=True)
class CardFinding:
    """
    One card: the limits of the pods that hold memory on it, what its pods were promised and do not
    hold yet, and what belongs to nobody.

    `unattributed_bytes` and `shortage` are set once they are worth saying. `unjudged_seconds` is
    for how long the time of its pods could not be counted, though some may be over their limits.
    """

    card: CardUse
    committed_bytes: int
    overcommitted: bool
    unattributed_bytes: int | None = None
    owed_bytes: int = 0
    shortage: Shortage | None = None
    unjudged_seconds: float = 0.0

    @property
    def unjudged(self) -> bool:
        """Return whether that is worth saying of a card whose processes can be listed."""
        return self.card.listed_at is not None and self.unjudged_seconds >= UNJUDGED_SECONDS


@dataclass(frozen=True, slots=True)
class Decision:
    """
    One tick. `acts` are the verdicts to carry out, worst first, each with its action; `suspects`
    are the cards whose processes the next sample must list. `brake` stops evictions of the whole
    node, or, SUSPENDED, those of the pods whose measure is among the `suspensions`. `deadline` is
    when the first pod may have to go whose time is all that is missing; infinite without any.
    `lending` are the idle pods of which others may borrow, by UID.
    """

    at: float
    verdicts: tuple[Verdict, ...]
    acts: tuple[Verdict, ...]
    brake: Brake | None
    suspects: frozenset[str]
    findings: Mapping[str, CardFinding]
    suspensions: tuple[Suspension, ...] = ()
    deadline: float = math.inf
    lending: frozenset[str] = frozenset()

    @property
    def missing(self) -> tuple[PodOnCard, ...]:
        """Return the pods that miss what others borrow of the same card, on each where they do."""
        recalled = sorted({item.uuid for item in self.verdicts if item.recalled})
        return tuple(
            use
            for uuid in recalled
            for uid, use in sorted(self.findings[uuid].card.pods.items())
            if use.owed_bytes and uid not in self.lending
        )


class Answer(StrEnum):
    """What the API server, or the last look before asking it, said."""

    ACCEPTED = "accepted"  # the pod goes; for a kill: the signal was sent
    BLOCKED = "blocked"  # 429 by a disruption budget, or 500 since several match
    TOO_LARGE = "too-large"  # etcd takes no object of the size that the pod would have
    FAILED = "failed"  # anything else: no rights, no connection, a server's own trouble
    GONE = "gone"  # 404: the pod is not there any more
    REPLACED = "replaced"  # 409: another pod has its name
    CANCELLED = "cancelled"  # the last look found no reason left; nothing was asked


@dataclass(frozen=True, slots=True)
class ActResult:
    """`after_seconds` is the server's Retry-After, `detail` its message."""

    answer: Answer
    after_seconds: float = 0.0
    detail: str = ""


class FinishedAct(NamedTuple):
    """An act, what became of it, and how long that took from the last look on."""

    verdict: Verdict
    result: ActResult
    seconds: float
