"""PURE. What the judge remembers from one tick to the next: small, bounded, replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.mode import Mode

Lineage: TypeAlias = tuple[str, str, str]


class Lender(NamedTuple):
    """The least that a pod has held of a card since it last grew, and when that was."""

    least_bytes: int
    grown_at: float | None = None


@dataclass(frozen=True, slots=True)
class Bucket:
    """
    Time over a threshold, leaking.

    `over` is what the last sample said; None: nothing certain. `since` is when it last left empty,
    `speed` how fast it fills from the last sample on.
    """

    level_seconds: float = 0.0
    over: bool | None = None
    at: float = 0.0
    since: float | None = None
    speed: float = 1.0


EMPTY = Bucket()


@dataclass(frozen=True, slots=True)
class Watch:
    """
    One pod on one card: a bucket for each threshold of the limit, which may move, and one for the
    time in which what it borrows was asked back.
    """

    report: Bucket = EMPTY
    hold: Bucket = EMPTY
    short: Bucket = EMPTY
    taking: Bucket = EMPTY
    recall: Bucket = EMPTY


NO_WATCH = Watch()


@dataclass(frozen=True, slots=True)
class Refusals:
    """
    Evictions of a pod that the API server refused, and when to ask again. One that is `too_large`
    it can neither evict nor delete.
    """

    count: int = 0
    while_short: int = 0
    retry_at: float = 0.0
    too_large: bool = False


NO_REFUSALS = Refusals()


@dataclass(frozen=True, slots=True)
class PodMemory:
    """One pod. `first_seen_at` is its first sample on any card since its mode last rose."""

    mode: Mode
    first_seen_at: float | None = None
    refusals: Refusals = NO_REFUSALS
    watches: Mapping[str, Watch] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Offence:
    """How often a lineage was evicted from this node, and when last."""

    count: int
    at: float


@dataclass(frozen=True, slots=True)
class Evicted:
    """One eviction, for the caps per minute; `card` is the one whose shortage it was to end."""

    at: float
    namespace: str
    card: str = ""
    uid: str = ""


class Looks(NamedTuple):
    """
    How looks follow each other: when the last one began, how long it took, and since when there was
    no hole between them. `gap_seconds` is how far apart they may come for that.
    """

    began_at: float | None = None
    seconds: float = 0.0
    unbroken_since: float = 0.0
    gap_seconds: float = 0.0


NO_LOOKS = Looks()


@dataclass(frozen=True, slots=True)
class Memory:
    """
    All of it; a new agent begins with its start time alone.

    `listed` is the last list judged of each card. `terminating` says since when a pod is on its way
    out, by its own word or because its eviction was accepted. `held_up` is for how long pods that
    were leaving have held up others on a card, `short` for how long a card has been short at the
    hands of somebody whom no eviction reaches.

    `looks` is how looks follow each other. `judged` is when the pods of a card could last be judged
    that are over their limits, or may be. `lenders` are kept while any pod of the node may borrow.
    """

    started_at: float
    pods: Mapping[str, PodMemory] = field(default_factory=dict)
    listed: Mapping[str, float] = field(default_factory=dict)
    terminating: Mapping[str, float] = field(default_factory=dict)
    evicted: tuple[Evicted, ...] = ()
    offences: Mapping[Lineage, Offence] = field(default_factory=dict)
    unattributed: Mapping[str, Bucket] = field(default_factory=dict)
    held_up: Mapping[str, Bucket] = field(default_factory=dict)
    short: Mapping[str, Bucket] = field(default_factory=dict)
    looks: Looks = NO_LOOKS
    judged: Mapping[str, float] = field(default_factory=dict)
    lenders: Mapping[tuple[str, str], Lender] = field(default_factory=dict)
