"""
The days of one model on all nodes, and how far they can be trusted.

The maximum everywhere, over days, pods and nodes, never a mean: allocators hardly give back, and a
limit below the need is a crash.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.names import GROWTH
from gpufence.need.rows import CardNeed, OwnerNeed
from gpufence.share import reserve_bytes
from gpufence.target import MostHeld, least_context
from gpufence.text import duration, limit_mebibytes, listed, mebibytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.need.rows import NeedDay, NeedKey, NodeNeed

LEAST_SECONDS: Final = 24 * 3600.0
LEAST_PODS: Final = 2
SURE_DAYS: Final = 7
SURE_PODS: Final = 3
FULL_PERCENT: Final = 97
"""Whoever stands so close to all he could take shows his cap, not his need."""

MAY_BE: Final = "may be, with its CUDA context,"

RISE_PERCENT: Final = 5
RISE_DAYS: Final = 3
"""A peak that rose by more than this within its last days may be rising still."""

_ALL: Final = 100


class Confidence(StrEnum):
    """How far a target can be trusted; at low there is none."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Measured(NamedTuple):
    """
    What is added up of a key's rows, one for each day and node on which it held memory.

    `peak_bytes` is the most of all rows, `held` what each of them asks a limit for. `pods` is how
    many different ones there were at the least, `too_small_bytes` the largest limit at which one
    was evicted or CUDA was out of memory, 0 for none.
    """

    key: NeedKey
    rows: tuple[NeedDay, ...]
    card: CardNeed
    days: tuple[str, ...]
    peak_bytes: int
    held: frozenset[MostHeld]
    pods: int
    held_seconds: float
    too_small_bytes: int

    @property
    def newest(self) -> tuple[NeedDay, ...]:
        return tuple(row for row in self.rows if row.day == self.days[-1])


def merged(needs: Iterable[NodeNeed]) -> list[OwnerNeed]:
    """Put the days of all nodes together by key; a day is there once for each node."""
    rows: dict[NeedKey, list[NeedDay]] = {}
    for need in needs:
        for owner in need.owners:
            rows.setdefault(owner.key, []).extend(owner.days)
    return [
        OwnerNeed(key, tuple(sorted(rows[key], key=lambda row: (row.day, row.peak_bytes))))
        for key in sorted(rows)
    ]


def cards_of(needs: Iterable[NodeNeed]) -> dict[str, CardNeed]:
    """Return each model of card: the least memory and the largest reserve that any node tells."""
    cards: dict[str, CardNeed] = {}
    for need in needs:
        for card in need.cards:
            other = cards.get(card.model, card)
            memory = min(card.memory_bytes, other.memory_bytes)
            reserve = max(card.reserve_bytes, other.reserve_bytes)
            cards[card.model] = CardNeed(card.model, memory, reserve)
    return cards


def measured_of(owner: OwnerNeed, card: CardNeed | None) -> Measured | None:
    """
    Add up the days of a key of `merged`; None where nothing was held on any of them. A card that
    nobody tells of has no size, and the middle reserve.
    """
    rows = tuple(_whole(row) for row in owner.days if row.peak_bytes)
    if not rows:
        return None
    by_day = {row.day: [each for each in rows if each.day == row.day] for row in rows}
    started = sum(row.started for row in rows)
    at_once = max(sum(row.pods for row in of_day) for of_day in by_day.values())
    return Measured(
        key=owner.key,
        rows=rows,
        card=card or CardNeed(owner.key.card, 0, reserve_bytes(None)),
        days=tuple(sorted(by_day)),
        peak_bytes=max(row.peak_bytes for row in rows),
        held=_held(rows),
        pods=max(started, at_once),
        held_seconds=sum(max(row.held_seconds for row in of_day) for of_day in by_day.values()),
        too_small_bytes=max(_too_small(row) for row in rows),
    )


def cap_reason(measured: Measured) -> str:
    """
    Return why the peak says nothing about the need, empty where it does: it stood at all that it
    was told, or that there is, and never took less where it could have taken more.
    """
    free = max((row.peak_bytes for row in measured.rows if not _at_cap(row, measured)), default=0)
    if measured.peak_bytes <= free:
        return ""
    peak = mebibytes(measured.peak_bytes)
    highest = [row for row in measured.rows if row.peak_bytes == measured.peak_bytes]
    if any(_took_all(row, measured.card) for row in highest):
        how = "is" if is_certain(measured) else MAY_BE
        what = f"{peak} {how} all that it is configured to take"
    else:
        what = f"{peak} is all of its card"
    return f"none: {what}, so its need is unknown; let it grow ({GROWTH}, in observe)"


def is_certain(measured: Measured) -> bool:
    """
    Return whether the peak would stand at its cap with a whole reserve as its context, too; with
    the least that a context can be it only may.
    """
    return any(
        row.capped or row.told_bytes is None
        for row in measured.rows
        if row.peak_bytes == measured.peak_bytes
    )


def confidence_of(measured: Measured) -> tuple[Confidence, str]:
    """Return how far a target can be trusted, and why, as a sentence."""
    seen = f"{_counted(len(measured.days), 'day')}, {_counted(measured.pods, 'pod')}"
    lacking = list(_lacking(measured))
    if lacking:
        return Confidence.LOW, f"{seen}; {listed(lacking)}"
    doubts = list(_doubts(measured))
    if doubts:
        return Confidence.MEDIUM, f"{seen}; {listed(doubts)}"
    return Confidence.HIGH, f"{seen}, and the peak stands"


def _lacking(measured: Measured) -> Iterator[str]:
    if measured.held_seconds < LEAST_SECONDS:
        held = duration(measured.held_seconds)
        yield f"memory was held for {held}, of the {duration(LEAST_SECONDS)} that it takes"
    if measured.pods < LEAST_PODS:
        yield "one pod may differ from the next"


def _doubts(measured: Measured) -> Iterator[str]:
    settled = _settled_days(measured)
    if settled < SURE_DAYS:
        under = ""
        if measured.too_small_bytes:
            under = f" under a limit above {limit_mebibytes(measured.too_small_bytes)}"
        yield f"{_counted(settled, 'day')}{under} of the {SURE_DAYS} that it takes"
    if measured.pods < SURE_PODS:
        yield f"{_counted(measured.pods, 'pod')} of the {SURE_PODS} that it takes"
    if _rises(measured):
        yield f"its peak rose by more than {RISE_PERCENT} % within the last {RISE_DAYS} days"


def _settled_days(measured: Measured) -> int:
    """
    Count the days on which nothing kept it from taking what it needs: those under a limit at which
    it was evicted or out of memory do not count.
    """
    small = measured.too_small_bytes
    hindered = {
        row.day
        for row in measured.rows
        if small and (_too_small(row) or (row.limit_bytes or small + 1) <= small)
    }
    return len(set(measured.days) - hindered)


def _rises(measured: Measured) -> bool:
    before = measured.days[:-RISE_DAYS]
    peak = max((row.peak_bytes for row in measured.rows if row.day in before), default=0)
    return measured.peak_bytes * _ALL > peak * (_ALL + RISE_PERCENT)


def _at_cap(row: NeedDay, measured: Measured) -> bool:
    whole = measured.card.memory_bytes
    takes_all = bool(whole) and row.peak_bytes * _ALL >= whole * FULL_PERCENT
    return _took_all(row, measured.card) or (row.told_bytes is None and takes_all)


def _took_all(row: NeedDay, card: CardNeed) -> bool:
    """
    Return whether a process took all that it was told, and no more: by the least its context can
    be, as targets have it, or one that takes what it gets would get more each time. Who broke his
    limit was not kept by it.
    """
    if row.limit_bytes and row.peak_bytes > row.limit_bytes:
        return False
    if row.capped or row.told_bytes is None:
        return row.capped
    process = row.process_bytes or (row.peak_bytes if row.processes == 1 else 0)
    allocated = process - least_context(card.reserve_bytes)
    heeds = process - card.reserve_bytes <= row.told_bytes
    return heeds and allocated * _ALL >= row.told_bytes * FULL_PERCENT


def _held(rows: tuple[NeedDay, ...]) -> frozenset[MostHeld]:
    """
    Return what each row asks a limit for; as many share the part as it says, or the newest do. One
    row more, whoever wrote it, so never makes a target smaller.
    """
    shares = max(row.shares for row in rows if row.day == rows[-1].day)
    return frozenset(
        MostHeld(row.peak_bytes, row.processes, row.process_bytes, max(row.shares, shares))
        for row in rows
    )


def _too_small(row: NeedDay) -> int:
    return max(row.evicted_limit_bytes, row.out_of_memory_limit_bytes)


def _counted(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _whole(row: NeedDay) -> NeedDay:
    """Count what was held at an eviction, by whichever process, where that was the most."""
    if row.evicted_bytes <= row.peak_bytes:
        return row
    return row._replace(peak_bytes=row.evicted_bytes, process_bytes=0)
