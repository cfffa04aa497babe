"""
What one node remembers of the memory that its models took, in values: the rows of a need.

A day is one of UTC. What nobody could tell is None or zero, as its field says, never a guess.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpufence.need.levels import Levels


class NeedKey(NamedTuple):
    """
    Whose need it is: an owner's container on a model of card. The owner is the topmost that is
    certain from the pod alone.
    """

    namespace: str
    kind: str
    name: str
    container: str
    card: str


class InNamespace(Protocol):
    """What a namespace has some of."""

    @property
    def namespace(self) -> str: ...


T = TypeVar("T", bound=InNamespace)


class NeedDay(NamedTuple):
    """
    One key on one day and one node.

    `peak_bytes` is the most that the container of one pod held on one card, by measuring or by the
    driver's own high-water mark, whichever is more (`driver_peak` where it is the driver's), and
    `process_bytes` the most of it in one process, 0 where no list of processes said so.
    `processes` is the most GPU processes of one pod on one card.

    `pods` are different pods that held memory that day, `started` those of them that did so for the
    first time. `held_seconds` is for how long any of them did: time by the clock, not summed up
    over pods.

    `told_bytes` is the largest allowance that one process was told, None where none was, `shares`
    how many processes shared the part by the pod's own word. `capped`: it stood at 97 % or more of
    what it was told, its contexts added. `limit_bytes` is the largest limit of the container.

    `evicted_bytes` and `evicted_limit_bytes` are use and limit at the eviction at the largest
    limit, `out_of_memory_limit_bytes` is the largest limit at which CUDA was seen out of memory;
    0 for none. `levels` say for how long how much was held; an older agent does not tell.
    """

    day: str
    peak_bytes: int
    pods: int = 1
    processes: int = 1
    held_seconds: float = 0.0
    capped: bool = False
    told_bytes: int | None = None
    limit_bytes: int | None = None
    evicted_bytes: int = 0
    evicted_limit_bytes: int = 0
    evictions: int = 0
    out_of_memory_limit_bytes: int = 0
    driver_peak: bool = False
    process_bytes: int = 0
    started: int = 0
    shares: int = 1
    levels: Levels = ()


class OwnerNeed(NamedTuple):
    """The days of one key, the oldest first."""

    key: NeedKey
    days: tuple[NeedDay, ...]

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def last_day(self) -> str:
        return self.days[-1].day if self.days else ""


class CardNeed(NamedTuple):
    """
    A model of card on the node: its memory, and what one process holds there outside its allocator.
    """

    model: str
    memory_bytes: int
    reserve_bytes: int


class NodeNeed(NamedTuple):
    """All that one node remembers."""

    node: str
    owners: tuple[OwnerNeed, ...] = ()
    cards: tuple[CardNeed, ...] = ()


def with_room(items: Sequence[T], most: int) -> list[T]:
    """
    Return those for whom there is room, the last ones first of each namespace: nobody's crowd takes
    the place of what others have few of.
    """
    if len(items) <= most:
        return list(items)
    each = _equal_share(Counter(item.namespace for item in items).values(), most)
    taken: Counter[str] = Counter()
    first: list[T] = []
    rest: list[T] = []
    for item in reversed(items):
        taken[item.namespace] += 1
        (first if taken[item.namespace] <= each else rest).append(item)
    return [*first, *rest][:most]


def _equal_share(counts: Collection[int], most: int) -> int:
    """Return the number of which everybody may have so many, or all that he has."""
    shares = range(most + 1)
    return bisect_right(shares, most, key=lambda each: sum(min(n, each) for n in counts)) - 1
