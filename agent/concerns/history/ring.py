"""
PURE. Ten minutes of each fenced pod on each card, in rings of a fixed size: 12 kB each.

Amounts are whole KiB: use rounded up, limits and free memory rounded down, so that what is over a
limit stays over it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpufence.records import MOST_MOMENTS, Moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent.model.policy import EvictionPolicy
    from agent.model.state import TickResult
    from agent.model.use import CardUse, Observation, UseKey

SPAN_SECONDS: Final = 600.0
STEP_SECONDS: Final = 1.0
"""No ring is entered into more often, unless a pod is evicted at that very look."""

SLOTS: Final = 600
MOST_RINGS: Final = 256
"""Pods on cards that are followed at the same time; all rings together take 3 MiB."""

_ROW: Final = Struct("<5I")  # when in tenths of a second, held, limit, free of the card, threshold
_UNKNOWN: Final = 2**32 - 1
_KIB_BITS: Final = 10
_KIB_LESS: Final = 1023
_KIB_OF_MIB: Final = 1024
_THERE_SECONDS: Final = 5.0
"""Since when a pod that is still there may not have been entered."""

_TENTHS: Final = 10
_Amounts: TypeAlias = "tuple[int, int, int, int]"


class RingMoment(NamedTuple):
    """What a pod held at a time of the agent's clock, in KiB; None is unknown."""

    at: float
    used: int | None
    limit: int | None
    free: int | None
    threshold: int | None


class Ring:
    """The last looks at one pod on one card."""

    __slots__ = ("_count", "_rows", "at")

    def __init__(self) -> None:
        self._rows = bytearray(_ROW.size * SLOTS)
        self._count = 0
        self.at = 0.0

    def enter(self, at: float, amounts: _Amounts) -> None:
        place = self._count % SLOTS * _ROW.size
        _ROW.pack_into(self._rows, place, int(at * _TENTHS), *amounts)
        self._count += 1
        self.at = at

    def moments(self, now: float) -> list[RingMoment]:
        """Return what is remembered of the last ten minutes, the oldest first."""
        rows = list(_ROW.iter_unpack(self._rows))
        split = self._count % SLOTS
        ordered = rows[:split] if self._count < SLOTS else [*rows[split:], *rows[:split]]
        since = (now - SPAN_SECONDS) * _TENTHS
        return [_moment(row) for row in ordered if row[0] >= since]


class Rings:
    """
    Those of all pods of the node. A pod that is gone is remembered for ten minutes; where there is
    no room for a new one, the one not seen for longest is forgotten, never one that is there.
    """

    def __init__(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self._rings: dict[UseKey, Ring] = {}
        self._at: float | None = None
        self._full = False

    def __len__(self) -> int:
        return len(self._rings)

    def look(self, tick: TickResult) -> None:
        """Enter one look, unless the one before was just a moment ago."""
        now, decision = tick.decision.at, tick.decision
        too_soon = self._at is not None and now - self._at < STEP_SECONDS
        if too_soon and not decision.acts:
            return
        self._at, self._full = now, False
        free = {uuid: _free(card) for uuid, card in tick.observation.cards.items()}
        for verdict in decision.verdicts:
            use = verdict.use
            if use is not None:
                uuid = use.card.uuid
                ring = self._rings.get((use.pod.uid, uuid)) or self._new(use.pod.uid, uuid)
                if ring is not None:
                    ring.enter(now, self._amounts(use.used_bytes, use.limit_bytes, free[uuid]))
        self._enter_rest(tick.observation, free, now)

    def moments(self, key: UseKey, now: float) -> list[RingMoment]:
        ring = self._rings.get(key)
        return [] if ring is None else ring.moments(now)

    def cards_of(self, uid: str) -> list[str]:
        """Return the cards on which a pod was seen."""
        return [uuid for each, uuid in self._rings if each == uid]

    def _enter_rest(
        self, observation: Observation, free: Mapping[str, int | None], now: float
    ) -> None:
        """Say of pods that hold nothing any more that they do, and forget those long gone."""
        for (uid, uuid), ring in list(self._rings.items()):
            if ring.at == now:
                continue
            pod, card = observation.pods.by_uid.get(uid), observation.cards.get(uuid)
            if pod is not None and card is not None:
                used = None if card.listed_at is None else 0
                ring.enter(now, self._amounts(used, pod.limit_on(uuid), free[uuid]))
            elif now - ring.at > SPAN_SECONDS:
                del self._rings[uid, uuid]

    def _new(self, uid: str, uuid: str) -> Ring | None:
        """Make room for one more; None where there is none."""
        if not self._full and len(self._rings) >= MOST_RINGS:
            oldest = min(self._rings, key=lambda key: self._rings[key].at)
            self._full = (self._at or 0.0) - self._rings[oldest].at <= _THERE_SECONDS
            if not self._full:
                del self._rings[oldest]
        if self._full:
            return None
        made = self._rings[uid, uuid] = Ring()
        return made

    def _amounts(self, used: int | None, limit: int | None, free: int | None) -> _Amounts:
        """Return what is entered; on a card that is nearly full time counts from less use on."""
        threshold, policy = None, self._policy
        if limit is not None:
            threshold = policy.evict_threshold(limit)
            if free is not None and free < policy.short_floor_bytes:
                threshold = min(threshold, limit + policy.short_margin_bytes)
        up = None if used is None else used + _KIB_LESS
        return _kib(up), _kib(limit), _kib(free), _kib(threshold)


def course_of(moments: Sequence[RingMoment], now: float) -> tuple[Moment, ...]:
    """Thin them out to as many as are kept in a record: of several the one with the most use."""
    step = max(-(-len(moments) // MOST_MOMENTS), 1)
    parts = (moments[place : place + step] for place in range(0, len(moments), step))
    most = (max(part, key=lambda each: -1 if each.used is None else each.used) for part in parts)
    return tuple(
        Moment(
            max(round(now - each.at), 0),
            None if each.used is None else -(-each.used // _KIB_OF_MIB),
            None if each.limit is None else each.limit // _KIB_OF_MIB,
            None if each.free is None else each.free // _KIB_OF_MIB,
        )
        for each in most
    )


def passed_seconds(moments: Sequence[RingMoment], now: float, *, evict: bool) -> float | None:
    """Return how long ago use passed the limit, or the threshold, above which it then stayed."""
    passed = None
    for each in reversed(moments):
        bound = each.threshold if evict else each.limit
        if each.used is None or bound is None:
            continue
        if each.used <= bound:
            break
        passed = max(now - each.at, 0.0)
    return passed


def peak_of(moments: Sequence[RingMoment]) -> int | None:
    """Return the most of it in bytes; None where nothing is known."""
    return max((each << _KIB_BITS for each in _known(moments)), default=None)


def _known(moments: Sequence[RingMoment]) -> Iterator[int]:
    return (each.used for each in moments if each.used is not None)


def _moment(row: tuple[int, ...]) -> RingMoment:
    at, *amounts = row
    known = (None if each == _UNKNOWN else each for each in amounts)
    return RingMoment(at / _TENTHS, *known)


def _kib(amount: int | None) -> int:
    return _UNKNOWN if amount is None else min(max(amount, 0) >> _KIB_BITS, _UNKNOWN - 1)


def _free(card: CardUse) -> int | None:
    return None if card.memory is None else card.memory.free_bytes
