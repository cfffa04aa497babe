"""
PURE. What each pod does on all cards of its node together, from one look to the next.

A pod that was given a GPU and holds no memory of any card uses nothing, as long as every card of
the node is watched: work that nobody is known by may be its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.activity.model import (
    Activity,
    ActivityMemory,
    Evidence,
    NodeDoubt,
    PodTrack,
    Span,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.concerns.activity.model import CardTrack, Track
    from agent.model.use import Observation, UseKey

_NO_CARD: Final = "no card of the node can be read"
_UNIDENTIFIED: Final = "a card of the node has never said which one it is"


class _Doing(NamedTuple):
    """What a pod does, and since when it has done nothing: the beginning of a `PodTrack`."""

    activity: Activity
    evidence: Evidence
    why: str
    since: float | None

    @property
    def uses(self) -> bool:
        return self.activity is Activity.BUSY and self.evidence is Evidence.KERNELS


class _Look(NamedTuple):
    """
    What there is to go by; `new` are the cards with new answers, `touched` the pods that hold
    memory there, work there, or did before. `works_on` has the cards on which each pod worked.
    """

    past: ActivityMemory
    cards: Mapping[str, CardTrack]
    new: Mapping[str, CardTrack]
    touched: frozenset[str]
    works_on: Mapping[str, list[str]]
    node: NodeDoubt
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
) -> ActivityMemory:
    """
    Return all that is known with what every pod does that holds memory of a card, or was given one;
    `troubles` are those of the cards that are not watched.

    Only pods to which something happened are worked out anew: a tick is short, and most are quiet.
    """
    new = {
        uuid: card
        for uuid, card in cards.items()
        if uuid not in past.cards or past.cards[uuid].until != card.until
    }
    node, index = _node(observation, cards, troubles), observation.pods
    quiet = not new and cards.keys() == past.cards.keys() and tracks == past.tracks
    if quiet and index is past.index and node == past.node:
        return past
    held: dict[str, dict[str, Track]] = {}
    for (uid, uuid), track in tracks.items():
        held.setdefault(uid, {})[uuid] = track
    touched = _touched(past, new, tracks)
    works_on: dict[str, list[str]] = {}
    for uuid, card in cards.items():
        for uid in card.working:
            works_on.setdefault(uid, []).append(uuid)
    look = _Look(past, cards, new, touched, works_on, node, mean_seconds, now)
    pods = {
        uid: _next(past.pods.get(uid), uid, held.get(uid, {}), look)
        for uid, pod in index.by_uid.items()
        if uid in held or pod.claims
    }
    return ActivityMemory(cards, tracks, pods, node, index)


def _touched(
    past: ActivityMemory, new: Mapping[str, CardTrack], tracks: Mapping[UseKey, Track]
) -> frozenset[str]:
    found = {uid for uid, uuid in tracks if uuid in new}
    for uuid, card in new.items():
        found.update(card.working, past.cards[uuid].working if uuid in past.cards else ())
    return frozenset(found)


def _node(
    observation: Observation, cards: Mapping[str, CardTrack], troubles: Iterable[str]
) -> NodeDoubt:
    trouble = next(iter(troubles), "")
    if observation.sample.unidentified:
        trouble = _UNIDENTIFIED
    if not cards:
        trouble = trouble or _NO_CARD
    doubt = next((card.doubt for card in cards.values() if card.doubt), "")
    return NodeDoubt(
        trouble, doubt, max((card.clear_since for card in cards.values()), default=0.0)
    )


def _next(past: PodTrack | None, uid: str, held: Mapping[str, Track], look: _Look) -> PodTrack:
    """Follow a pod over one more look, and add up when it used any card."""
    if past is None:
        past = PodTrack(idle_since=look.now)
    elif _is_settled(past, uid, held, look):
        return past
    does = _does(past, uid, held, look)
    cards = past.held if past.held == held.keys() else frozenset(held)
    if does.since is None:
        return PodTrack(does.activity, does.evidence, does.why, None, cards)
    seen = [look.cards[uuid] for uuid in held if uuid in look.cards]
    until = min([card.until for card in seen], default=look.now)
    began = until - look.mean_seconds
    used = tuple([span for span in (*past.used, *_spans(uid, held, look)) if span.until > began])
    known_since, share = past.known_since, None
    unknown = does.activity is Activity.UNKNOWN
    if known_since is None or unknown or any(card.clear_since >= look.now for card in seen):
        known_since = look.now
    if not unknown:
        since = max(known_since, began)
        share = covered(used, since, until) if since < until else float(does.uses)
    return PodTrack(*does, held=cards, used=used, known_since=known_since, busy_share=share)


def _is_settled(past: PodTrack, uid: str, held: Mapping[str, Track], look: _Look) -> bool:
    """
    Return whether nothing has happened that could make a pod another: no answer is about it, or it
    rested before and still does.
    """
    before = look.past.tracks
    if past.held != held.keys():
        return False
    if uid in look.touched:
        rests = past.activity is Activity.IDLE and not past.used and uid not in look.works_on
        return (
            rests
            and bool(held)
            and all(
                track.activity is Activity.IDLE
                and (known := before.get((uid, uuid))) is not None
                and known.idle_since == track.idle_since
                for uuid, track in held.items()
            )
        )
    if held:
        return all(before.get((uid, uuid)) == track for uuid, track in held.items())
    if past.activity is Activity.BUSY or past.used:
        return not look.new
    return look.node == look.past.node


def _does(past: PodTrack, uid: str, held: Mapping[str, Track], look: _Look) -> _Doing:
    tracks = held.values()
    known = [track.idle_since for track in tracks if track.idle_since is not None]
    if past.idle_since is not None:
        known.append(past.idle_since)
    since = max(known, default=look.now)
    if any(uuid not in held for uuid in look.works_on.get(uid, ())):
        return _Doing(Activity.BUSY, Evidence.KERNELS, "", look.now)
    for track in tracks:
        if track.activity is Activity.BUSY:
            return _Doing(Activity.BUSY, track.evidence, "", since)
    if past.held - held.keys():
        return _Doing(Activity.BUSY, Evidence.LOADING, "", look.now)
    if not held:
        return _does_without_memory(past, look)
    for track in tracks:
        if track.activity is Activity.UNKNOWN:
            lost = any(item.idle_since is None for item in tracks)
            return _unknown(track.why, None if lost else since)
    return _Doing(Activity.IDLE, Evidence.NOTHING, "", since)


def _does_without_memory(past: PodTrack, look: _Look) -> _Doing:
    """Return what a pod does that holds no memory: it is idle since nobody could have been it."""
    if look.node.trouble:
        return _unknown(look.node.trouble, None)
    began = look.now if past.idle_since is None else past.idle_since
    since = max(began, look.node.clear_since)
    if look.node.doubt:
        return _unknown(look.node.doubt, since)
    return _Doing(Activity.IDLE, Evidence.NOTHING, "", since)


def _unknown(why: str, since: float | None) -> _Doing:
    return _Doing(Activity.UNKNOWN, Evidence.NOT_MEASURABLE, why, since)


def _spans(uid: str, held: Mapping[str, Track], look: _Look) -> Iterator[Span]:
    for uuid, track in held.items():
        card = look.new.get(uuid)
        if card is not None and track.share:
            yield Span(card.since, card.until, uuid, track.share)
    for uuid in look.works_on.get(uid, ()):
        card = look.new.get(uuid)
        if card is not None and uuid not in held:
            yield Span(card.since, card.until, uuid, card.working[uid])


def covered(spans: Iterable[Span], since: float, until: float) -> float:
    """
    Return which share of a time a pod used the card that it used most: cards that work together
    work at the same time. Spans of one card follow each other.
    """
    seconds: dict[str, float] = {}
    for began, ended, card, share in spans:
        begins = max(since, began)
        ends = min(until, ended)
        if ends > begins:
            seconds[card] = seconds.get(card, 0.0) + (ends - begins) * share
    return min(max(seconds.values(), default=0.0) / (until - since), 1.0)
