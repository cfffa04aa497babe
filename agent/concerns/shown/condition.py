"""
PURE. What each pod with a limit shall say of its memory: when another outcome begins, or a tenth of
the limit has moved.

A pod whose use swings all day says so less and less often, down to every ten minutes, and a node
asks for few a second: all pods of a large cluster together stay far below what an API server takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.decision import Outcome
from agent.model.pod import PodCondition
from gpufence.capped import Why, capped
from gpufence.memory_condition import STATUSES, HeldOnCard, MemoryReason, write_message
from gpufence.names import GPU_MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode, PodsOnNode

PAUSE_SECONDS: Final = 60.0
MOST_PAUSE_SECONDS: Final = 600.0
UNKNOWN_SECONDS: Final = 30.0
"""How long nothing is measured before that is said: a child that measures is replaced sooner."""
MOST_AT_ONCE: Final = 5
"""Of one node's pods, in one look: an agent that starts has all of them to write."""
_PARTS: Final = 10
_NO_LIMIT: Final = "no limit applies to it, or its agent does not say what it holds"
_AT_ONCE: Final = frozenset({MemoryReason.RECALLED, MemoryReason.EVICTED})
_RANKS: Final = {reason: rank for rank, reason in enumerate(MemoryReason)}


class Words(NamedTuple):
    """What a pod has to say; on no card where nothing is to be said of any."""

    reason: MemoryReason
    cards: tuple[HeldOnCard, ...] = ()

    @property
    def message(self) -> str:
        return write_message(self.reason, self.cards) if self.cards else _NO_LIMIT


NOTHING: Final = Words(MemoryReason.UNKNOWN)


class LastWord(NamedTuple):
    """What was asked to be written last, and when; `unknown_since`: nothing is measured since."""

    words: Words = NOTHING
    at: float = -math.inf
    pause: float = PAUSE_SECONDS
    unknown_since: float | None = None


NOTHING_SAID: Final[Mapping[str, LastWord]] = {}


def words_of(verdicts: Iterable[Verdict]) -> dict[str, Words]:
    """Return what pods with a limit have to say, by UID."""
    by_pod: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.pod.limits:
            by_pod.setdefault(verdict.pod.uid, []).append(verdict)
    found = {uid: _words(items[0].pod, items) for uid, items in by_pod.items()}
    return {uid: words for uid, words in found.items() if words is not None}


def due(
    pods: PodsOnNode, words: Mapping[str, Words], said: Mapping[str, LastWord], now: float
) -> tuple[list[PodCondition], Mapping[str, LastWord]]:
    """Return the conditions to be written, the worst first, and what has been said with them."""
    kept = {uid: last for uid, last in said.items() if uid in pods.by_uid}
    wanted: list[tuple[PodOnNode, Words]] = []
    for uid, pod in pods.by_uid.items():
        has = words.get(uid, NOTHING)
        last = kept.get(uid, LastWord())
        if pod.ended or pod.terminating or (uid not in words and not pod.memory_said):
            continue
        since = None
        if has.reason is MemoryReason.UNKNOWN:
            since = now if last.unknown_since is None else last.unknown_since
        if since != last.unknown_since:
            kept[uid] = last = last._replace(unknown_since=since)
        lasts = since is None or now - since >= UNKNOWN_SECONDS
        if lasts and _is_news(has, last, pod.memory_said, now):
            wanted.append((pod, has))
    wanted.sort(key=lambda item: -_RANKS[item[1].reason])
    for pod, has in wanted[:MOST_AT_ONCE]:
        kept[pod.uid] = _said(kept.get(pod.uid, LastWord()), has, now)
    return [_condition(*item) for item in wanted[:MOST_AT_ONCE]], kept


def _words(pod: PodOnNode, verdicts: Sequence[Verdict]) -> Words | None:
    uses = [(verdict.use, verdict.over) for verdict in verdicts if verdict.use is not None]
    cards = [
        HeldOnCard(
            use.card.index,
            use.certain_bytes if over else use.used_bytes,
            use.limit_bytes,
            pod.request_on(use.card.uuid),
        )
        for use, over in uses
        if use.limit_bytes is not None
    ]
    if not cards and (uses or pod.unasked):
        return None
    ended = MemoryReason.CAPPED if _ended_at_cap(pod) else MemoryReason.WITHIN
    if not cards:
        least = min(limit.limit_bytes for limit in pod.limits.values())
        return Words(ended, (HeldOnCard(None, 0, least),))
    reason = max(ended, *map(_reason, verdicts), key=_RANKS.__getitem__)
    return Words(reason, tuple(sorted(cards, key=lambda item: item.card or 0)))


def _ended_at_cap(pod: PodOnNode) -> bool:
    """Return whether a container waits after an end at its cap, by its own words."""
    waiting = (one for one in pod.failures if one.ending.waiting)
    ends = (capped(one.ending, one.given) for one in waiting)
    return any(found and found.certain and found.why is Why.CAPPED for found in ends)


def _reason(verdict: Verdict) -> MemoryReason:
    if verdict.outcome is Outcome.EVICT:
        return MemoryReason.EVICTED
    if verdict.recalled:
        return MemoryReason.RECALLED
    if verdict.outcome is Outcome.BORROWING:
        return MemoryReason.BORROWING
    if verdict.over:
        return MemoryReason.OVER
    unknown = verdict.use is not None and verdict.use.used_bytes is None
    return MemoryReason.UNKNOWN if unknown else MemoryReason.WITHIN


def _is_news(has: Words, last: LastWord, shown: str, now: float) -> bool:
    """Return whether a pod says something else, or what it was to say has not come to be shown."""
    reason = has.reason
    if last.at == -math.inf:
        return reason is not MemoryReason.UNKNOWN or shown != STATUSES[reason]
    passed = now - last.at
    if reason is not last.words.reason:
        return reason in _AT_ONCE or passed >= PAUSE_SECONDS
    if shown != STATUSES[reason]:
        return passed >= PAUSE_SECONDS
    return passed >= last.pause and _has_moved(has.cards, last.words.cards)


def _has_moved(cards: Sequence[HeldOnCard], before: Sequence[HeldOnCard]) -> bool:
    if [(item.card, item.limit_bytes) for item in cards] != [
        (item.card, item.limit_bytes) for item in before
    ]:
        return True
    return any(
        abs((item.used_bytes or 0) - (was.used_bytes or 0)) * _PARTS >= item.limit_bytes
        for item, was in zip(cards, before, strict=True)
    )


def _said(last: LastWord, has: Words, now: float) -> LastWord:
    lately = now - last.at < 4 * last.pause
    pause = min(2 * last.pause, MOST_PAUSE_SECONDS) if lately else PAUSE_SECONDS
    return LastWord(has, now, pause, last.unknown_since)


def _condition(pod: PodOnNode, has: Words) -> PodCondition:
    status = STATUSES[has.reason]
    said = (status, str(has.reason), has.message)
    return PodCondition(
        *(pod.namespace, pod.name, pod.uid, GPU_MEMORY, *said), turned=status != pod.memory_said
    )
