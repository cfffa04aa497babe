"""
PURE. The days of each owner's container on each model of card, entered look by look.

Everything that is entered is a maximum, so that entering it twice, or putting together what two
agents have seen, changes nothing; only different pods, evictions and time are counted. Last comes
the ConfigMap in which they outlive an agent, and what is taken back from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent.concerns.need.container_usage import container_usages, key_of, models_of, part_of
from agent.concerns.need.model import NO_NEED, SeenUsage, StoredNeed
from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.need import (
    NeedDay,
    NodeNeed,
    OwnerNeed,
    bounded,
    need_configmap,
    read_need,
    with_room,
    write_bounded,
)
from gpufence.need.levels import held_longer, level_of, more_seen
from gpufence.nodes import kept_configmap
from gpufence.shape import Object, as_object, as_text, as_texts
from gpufence.times import read_moment, write_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.concerns.need.container_usage import ContainerUsage
    from agent.concerns.need.model import NeedLedger, NeedLook
    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from gpufence.cards import Card
    from gpufence.need import NeedKey

MOST_KEYS: Final = 512
"""
More than have GPU pods on a node in weeks; who has been away for longest is forgotten first, of the
namespace that has the most.
"""

MOST_DAYS: Final = 16
"""Two more than are stored, for days that only a wrong clock has known."""

PASS_SECONDS: Final = 15.0
"""From one look at all pods to the next, while nothing changes."""

_DAY: Final = len("2026-11-19")
_NO_DAYS: Final[Mapping[str, NeedDay]] = {}


def entered(ledger: NeedLedger, look: NeedLook) -> NeedLedger:
    """Enter one look, unless it shows what the last one showed."""
    observation = look.observation
    if not _is_due(ledger, look):
        return ledger
    rows, known, met = dict(ledger.rows), dict(ledger.known), dict(ledger.met)
    holding: dict[NeedKey, int] = {}
    for usage in container_usages(observation, look.before):
        place = usage.pod.uid, usage.container, usage.card.uuid
        past = met.get(place)
        if past is None or not _covers(past, usage, look.day):
            met[place] = past = _meet(rows, known, ledger, usage, look.day)
        if usage.there:
            level = level_of(usage.used_bytes)
            holding[past.key] = max(level, holding.get(past.key, 0))
    if look.before is None or observation.pods is not look.before.pods:
        there = observation.pods.by_uid
        for pod in there.values():
            if pod.out_of_memory and pod.mode is not None:
                _end(rows, known, pod, look)
        known = {pair: day for pair, day in known.items() if pair[0] in there}
        met = {place: item for place, item in met.items() if place[0] in there}
    held_at = _hold(rows, ledger, look, holding)
    seen = {**ledger.seen, **dict.fromkeys(holding, look.now)}
    rows = _bounded(rows, seen)
    return replace(
        ledger,
        rows=ledger.rows if rows == ledger.rows else rows,
        cards={**ledger.cards, **models_of(item.card for item in observation.sample.cards)},
        known=known,
        met=met,
        holding=holding,
        held_at=held_at,
        seen={key: at for key, at in seen.items() if key in rows},
        at=look.now,
        day=look.day,
    )


def evicted(ledger: NeedLedger, verdict: Verdict, day: str) -> NeedLedger:
    """
    Enter an eviction that was accepted: of the containers over their parts, or of all that hold
    memory where none is.
    """
    use = verdict.use
    if use is None or not use.containers or verdict.pod.mode is None:
        return ledger
    over = {item.container for item in verdict.containers_over}
    rows = dict(ledger.rows)
    for container, used in use.containers.items():
        if not over or container in over:
            key = key_of(verdict.pod, container, use.card)
            row = _day(rows, key, day)
            limit = part_of(verdict.pod, container, use.card.uuid) or 0
            went = row._replace(evicted_limit_bytes=limit, evicted_bytes=used)
            _put(rows, key, united(row, went)._replace(evictions=row.evictions + 1))
    return replace(ledger, rows=rows)


def restored(ledger: NeedLedger, stored: StoredNeed) -> NeedLedger:
    """Take over what an agent of this node has stored."""
    rows = dict(ledger.rows)
    for owner in stored.need.owners:
        for row in owner.days:
            have = rows.get(owner.key, _NO_DAYS).get(row.day)
            _put(rows, owner.key, row if have is None else united(have, row))
    cards = {card.model: card for card in stored.need.cards} | dict(ledger.cards)
    rows = _bounded(rows, ledger.seen)
    if ledger.at is not None:
        return replace(ledger, rows=rows, cards=cards)
    last = {owner.key: owner.last_day for owner in stored.need.owners if owner.days}
    return replace(ledger, rows=rows, cards=cards, restored=last, restored_at=stored.written)


def need_of(ledger: NeedLedger, node: str) -> NodeNeed:
    """Return all that is remembered, in order."""
    owners = [
        OwnerNeed(key, tuple(days[day] for day in sorted(days)))
        for key, days in sorted(ledger.rows.items())
    ]
    used = {owner.key.card for owner in owners}
    cards = [card for model, card in sorted(ledger.cards.items()) if model in used]
    return NodeNeed(node, tuple(owners), tuple(cards))


def united(one: NeedDay, other: NeedDay) -> NeedDay:
    """Put together what is known of one day: of each figure the larger."""
    if one == other:
        return one
    peak = max(one, other, key=lambda day: (day.peak_bytes, not day.driver_peak))
    gone = max(one, other, key=lambda day: (day.evicted_limit_bytes, day.evicted_bytes))
    return NeedDay(
        day=one.day,
        peak_bytes=peak.peak_bytes,
        pods=max(one.pods, other.pods),
        processes=max(one.processes, other.processes),
        held_seconds=max(one.held_seconds, other.held_seconds),
        capped=one.capped or other.capped,
        told_bytes=_larger(one.told_bytes, other.told_bytes),
        limit_bytes=_larger(one.limit_bytes, other.limit_bytes),
        evicted_bytes=gone.evicted_bytes,
        evicted_limit_bytes=gone.evicted_limit_bytes,
        evictions=max(one.evictions, other.evictions),
        out_of_memory_limit_bytes=max(
            one.out_of_memory_limit_bytes, other.out_of_memory_limit_bytes
        ),
        driver_peak=peak.driver_peak,
        process_bytes=max(one.process_bytes, other.process_bytes),
        started=max(one.started, other.started),
        shares=max(one.shares, other.shares),
        levels=more_seen(one.levels, other.levels),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((item for item in (one, other) if item is not None), default=None)


def _is_due(ledger: NeedLedger, look: NeedLook) -> bool:
    observation = look.observation
    return (
        ledger.at is None
        or look.now - ledger.at >= PASS_SECONDS
        or not observation.shows_what(look.before)
        or any(sample.peaks for sample in observation.sample.cards)
    )


def _hold(
    rows: dict[NeedKey, Mapping[str, NeedDay]],
    ledger: NeedLedger,
    look: NeedLook,
    holding: Mapping[NeedKey, int],
) -> float:
    """
    Enter the time of those who held memory since it was entered last, on the day on which it began,
    where they or their levels are others now or it is time to; return up to when it is entered.
    """
    same = holding == ledger.holding and look.day == ledger.day
    if ledger.at is None or (same and look.now - ledger.held_at < PASS_SECONDS):
        return look.now if ledger.at is None else ledger.held_at
    since = min(max(look.now - ledger.at, 0.0), PASS_SECONDS + look.gap_seconds)
    seconds = ledger.at - ledger.held_at + since
    for key in ledger.holding.keys() & rows.keys():
        row = _day(rows, key, ledger.day)
        levels = held_longer(row.levels, ledger.holding[key], seconds)
        longer = row._replace(held_seconds=row.held_seconds + seconds, levels=levels)
        _put(rows, key, longer)
    return look.now


def _covers(past: SeenUsage, usage: ContainerUsage, day: str) -> bool:
    """Return whether the same pod has shown as much on this day already."""
    return (
        past.pod is usage.pod
        and past.day == day
        and past.most_bytes >= usage.most_bytes
        and past.largest_bytes >= usage.largest_bytes
        and past.processes >= usage.processes
    )


def _meet(
    rows: dict[NeedKey, Mapping[str, NeedDay]],
    known: dict[tuple[str, NeedKey], str],
    ledger: NeedLedger,
    usage: ContainerUsage,
    day: str,
) -> SeenUsage:
    """Enter what a container holds, and count its pod if this day has not seen it."""
    key, uid = key_of(usage.pod, usage.container, usage.card), usage.pod.uid
    row = united(_day(rows, key, day), usage.as_day(day))
    counted_on = known.get((uid, key))
    if counted_on != day:
        known[uid, key] = day
        old = counted_on is not None
        if not old and usage.pod.created <= ledger.restored_at:
            counted_on = ledger.restored.get(key)
            old = counted_on is not None
        pods = row.pods + (0 if counted_on == day else 1)
        row = row._replace(pods=pods, started=row.started + (0 if old else 1))
    _put(rows, key, row)
    return SeenUsage(key, usage.pod, day, usage.most_bytes, usage.largest_bytes, usage.processes)


def _end(
    rows: dict[NeedKey, Mapping[str, NeedDay]],
    known: Mapping[tuple[str, NeedKey], str],
    pod: PodOnNode,
    look: NeedLook,
) -> None:
    """
    Enter the containers of a pod that ended for want of memory, on the day on which they did.

    A limit that nobody set was the most they had: their card, or what others had left of it.
    """
    for container, ended in pod.out_of_memory.items():
        day = min(ended or look.day, look.day)
        for card in _cards_of(pod, container, known, look):
            key = key_of(pod, container, card)
            row = _day(rows, key, day)
            limit = part_of(pod, container, card.uuid) or row.peak_bytes
            if limit > row.out_of_memory_limit_bytes:
                _put(rows, key, row._replace(out_of_memory_limit_bytes=limit))


def _cards_of(
    pod: PodOnNode, container: str, known: Mapping[tuple[str, NeedKey], str], look: NeedLook
) -> Iterator[Card]:
    """
    Yield one card of each model on which a container was seen, else that it was given, else the
    only one there is.
    """
    cards = {item.card.full_model: item.card for item in look.observation.sample.cards}
    met = {key.card for uid, key in known if uid == pod.uid and key.container == container}
    if not met:
        given = (item.card for item in look.observation.sample.cards)
        met = {card.full_model for card in given if card.uuid in pod.assigned}
    if not met and len(cards) == 1:
        met = set(cards)
    yield from (cards[model] for model in sorted(met & cards.keys()))


def _day(rows: Mapping[NeedKey, Mapping[str, NeedDay]], key: NeedKey, day: str) -> NeedDay:
    """Return a day of a key; one of which nothing is known yet has nothing in it."""
    found = rows.get(key, _NO_DAYS).get(day)
    return NeedDay(day, 0, pods=0, processes=0) if found is None else found


def _put(rows: dict[NeedKey, Mapping[str, NeedDay]], key: NeedKey, row: NeedDay) -> None:
    days = rows.get(key, _NO_DAYS)
    if days.get(row.day) == row:
        return
    days = {**days, row.day: row}
    while len(days) > MOST_DAYS:
        del days[min(days)]
    rows[key] = days


def _bounded(
    rows: dict[NeedKey, Mapping[str, NeedDay]], seen: Mapping[NeedKey, float]
) -> dict[NeedKey, Mapping[str, NeedDay]]:
    if len(rows) <= MOST_KEYS:
        return rows
    latest = sorted(rows, key=lambda key: (max(rows[key]), seen.get(key, 0.0), key))
    return {key: rows[key] for key in with_room(latest, MOST_KEYS)}


def configmap(need: NodeNeed, now: str, version: str) -> dict[str, object]:
    """Make the object whole; `version` is the one it replaces, empty for a new one."""
    data = {names.NEED_KEY: write_bounded(need, now[:_DAY]), names.NEED_WRITTEN: now}
    return kept_configmap(need_configmap(need.node), names.NEED_LABEL, data, version)


def stored_need(written: Object, node: str, now: str) -> StoredNeed:
    """
    Read back as much as an agent would have stored, whatever wrote it.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: no agent of this node wrote it.
    """
    data = as_texts(as_object(written, "configmap").get("data"), "data")
    need = read_need(as_text(data.get(names.NEED_KEY), names.NEED_KEY))
    if need.node != node:
        remedy = "delete the ConfigMap; it is written anew"
        raise InvalidError(Problem("need.node", need.node, f"is not {node}", remedy))
    at = as_text(data.get(names.NEED_WRITTEN), names.NEED_WRITTEN)
    return StoredNeed(bounded(need, now[:_DAY]), write_moment(read_moment(at, names.NEED_WRITTEN)))


def both(one: NodeNeed, other: NodeNeed) -> NodeNeed:
    """Put together what two agents of a node remember."""
    ledger = restored(restored(NO_NEED, StoredNeed(other)), StoredNeed(one))
    return need_of(ledger, one.node)
