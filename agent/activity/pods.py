"""
PURE. What each pod does on all cards of its node together, from one look to the next.

A pod that was given a GPU and holds no memory of any card uses nothing, as long as every card of
the node is watched: work that nobody is known by may be its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.activity import Activity, Evidence, PodTrack, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.activity import ActivityMemory, CardTrack, Track, UseKey
    from agent.model.use import Observation

_NO_CARD: Final = "no card of the node can be read"
_UNIDENTIFIED: Final = "a card of the node has never said which one it is"


class _Node(NamedTuple):
    """
    What holds for whoever holds no memory: `trouble` is a card that is not watched, `doubt` work
    that nobody is known by, the last of which ended at `clear_since`.
    """

    trouble: str
    doubt: str
    clear_since: float


class _Look(NamedTuple):
    cards: Mapping[str, CardTrack]
    new: Mapping[str, CardTrack]
    node: _Node
    mean_seconds: float
    now: float


def pods_watched(
    observation: Observation,
    past: ActivityMemory,
    cards: Mapping[str, CardTrack],
    tracks: Mapping[UseKey, Track],
    troubles: Iterable[str],
    *,
    mean_seconds: float,
    now: float,
) -> dict[str, PodTrack]:
    """
    Return what is known of every pod that holds memory of a card, or was given one; `troubles` are
    those of the cards that are not watched.
    """
    held: dict[str, dict[str, Track]] = {}
    for (uid, uuid), track in tracks.items():
        held.setdefault(uid, {})[uuid] = track
    new = {
        uuid: card
        for uuid, card in cards.items()
        if uuid not in past.cards or past.cards[uuid].until != card.until
    }
    look = _Look(cards, new, _node(observation, cards, troubles), mean_seconds, now)
    return {
        uid: _next(past.pods.get(uid, PodTrack(idle_since=now)), uid, held.get(uid, {}), look)
        for uid, pod in observation.pods.by_uid.items()
        if uid in held or pod.claims
    }


def _node(
    observation: Observation, cards: Mapping[str, CardTrack], troubles: Iterable[str]
) -> _Node:
    trouble = next(iter(troubles), "")
    if observation.sample.unidentified:
        trouble = _UNIDENTIFIED
    if not cards:
        trouble = trouble or _NO_CARD
    doubt = next((card.doubt for card in cards.values() if card.doubt), "")
    return _Node(trouble, doubt, max((card.clear_since for card in cards.values()), default=0.0))


def _next(past: PodTrack, uid: str, held: Mapping[str, Track], look: _Look) -> PodTrack:
    """
    Follow a pod over one more look, and add up when it used any card.
    """
    track = _state(past, uid, held, look)._replace(held=frozenset(held))
    if track.idle_since is None:
        return track._replace(used=(), known_since=None, busy_share=None)
    until = min((look.cards[u].until for u in held if u in look.cards), default=look.now)
    began = until - look.mean_seconds
    used = tuple(span for span in (*past.used, *_spans(uid, held, look)) if span.until > began)
    known_since = past.known_since
    hole = any(look.cards[uuid].clear_since >= look.now for uuid in held if uuid in look.cards)
    if known_since is None or hole or track.activity is Activity.UNKNOWN:
        known_since = look.now
    share = None
    if track.activity is not Activity.UNKNOWN:
        since = max(known_since, began)
        share = covered(used, since, until) if since < until else float(_uses(track))
    return track._replace(used=used, known_since=known_since, busy_share=share)


def _state(past: PodTrack, uid: str, held: Mapping[str, Track], look: _Look) -> PodTrack:
    known = [past.idle_since, *(track.idle_since for track in held.values())]
    since = max((time for time in known if time is not None), default=look.now)
    if any(uid in card.working for uuid, card in look.cards.items() if uuid not in held):
        return _told(past, Activity.BUSY, Evidence.KERNELS, look.now)
    for track in held.values():
        if track.activity is Activity.BUSY:
            return _told(past, Activity.BUSY, track.evidence, since)
    if past.held - held.keys():
        return _told(past, Activity.BUSY, Evidence.LOADING, look.now)
    if not held:
        return _empty_handed(past, look)
    for track in held.values():
        if track.activity is Activity.UNKNOWN:
            lost = any(item.idle_since is None for item in held.values())
            return _unknown(past, track.why, None if lost else since)
    return _told(past, Activity.IDLE, Evidence.NOTHING, since)


def _empty_handed(past: PodTrack, look: _Look) -> PodTrack:
    """
    Return what a pod does that holds no memory: it is idle since nobody could have been it.
    """
    if look.node.trouble:
        return _unknown(past, look.node.trouble, None)
    began = look.now if past.idle_since is None else past.idle_since
    since = max(began, look.node.clear_since)
    if look.node.doubt:
        return _unknown(past, look.node.doubt, since)
    return _told(past, Activity.IDLE, Evidence.NOTHING, since)


def _told(
    past: PodTrack, activity: Activity, evidence: Evidence, since: float | None, why: str = ""
) -> PodTrack:
    return past._replace(activity=activity, evidence=evidence, why=why, idle_since=since)


def _unknown(past: PodTrack, why: str, since: float | None) -> PodTrack:
    return _told(past, Activity.UNKNOWN, Evidence.NOT_MEASURABLE, since, why)


def _uses(track: PodTrack) -> bool:
    return track.activity is Activity.BUSY and track.evidence is Evidence.KERNELS


def _spans(uid: str, held: Mapping[str, Track], look: _Look) -> Iterator[Span]:
    for uuid, card in look.new.items():
        share = held[uuid].share if uuid in held else card.working.get(uid, 0.0)
        if share:
            yield Span(card.since, card.until, uuid, share)


def covered(spans: Iterable[Span], since: float, until: float) -> float:
    """
    Return which share of a time a pod used the card that it used most: cards that work together
    work at the same time. Spans of one card follow each other.
    """
    seconds: dict[str, float] = {}
    for span in spans:
        part = max(min(span.until, until) - max(span.since, since), 0.0) * span.share
        seconds[span.card] = seconds.get(span.card, 0.0) + part
    return min(max(seconds.values(), default=0.0) / (until - since), 1.0)
