"""
PURE. What each pod does on each card, from one look to the next.

A pod is busy if anything says so, and idle only if everything that could say so was watched without
a hole and said nothing. What nobody can tell makes it unknown, and its time begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.activity.evidence import (
    Look,
    hidden_since,
    known_processes,
    moved_unseen,
    nameless,
    spoiled,
    used_on,
    weighed,
    working_pods,
)
from agent.activity.pods import pods_watched
from agent.model.activity import (
    NO_ACTIVITY,
    Activity,
    ActivityMemory,
    CardTrack,
    Evidence,
    Track,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.model.activity import ActivityPolicy, UseKey, Witness
    from agent.model.sample import CardSample
    from agent.model.use import CardUse, Observation

_HIDDEN: Final = "the card is busy while no process that is known is"
_HOLE: Final = "it is watched only since a moment ago"


def pids_to_read(observation: Observation, memory: ActivityMemory) -> set[int]:
    """
    Return the processes of whom the kernel is to say what they used of the CPU: of pods, on the
    cards that have a new answer.
    """
    return {
        process.pid
        for sample in _answered(observation, memory)
        for use in observation.cards[sample.card.uuid].pods.values()
        for process in use.processes
        if process.container not in use.pod.cpu_ignored
    }


def strangers(observation: Observation, memory: ActivityMemory) -> set[int]:
    """Return workers whom no list names yet: they have started since, or have already ended."""
    found: set[int] = set()
    for sample in _answered(observation, memory):
        workers = sample.work.workers if sample.work is not None else None
        if workers:
            found |= workers.keys() - known_processes(observation.cards[sample.card.uuid]).keys()
    return found


def watched(
    observation: Observation,
    witness: Witness,
    memory: ActivityMemory = NO_ACTIVITY,
    *,
    policy: ActivityPolicy,
    now: float,
) -> ActivityMemory:
    """Return what is known after a look; the same while no card has anything new to say."""
    cards: dict[str, CardTrack] = {}
    tracks: dict[UseKey, Track] = {}
    troubles: list[str] = []
    for sample in observation.sample.cards:
        uuid = sample.card.uuid
        use = observation.cards[uuid]
        past = memory.cards.get(uuid)
        trouble, work = spoiled(sample, use, now, policy), sample.work
        if trouble or work is None:
            troubles.append(trouble)
            tracks |= _unknown(use, memory, trouble)
            continue
        if past is not None and past.until == work.until:
            cards[uuid] = past
            tracks |= _as_before(use, memory)
            continue
        whole = past is not None and work.since <= past.until < work.until
        since = hidden_since(work, past, policy) if whole else None
        working = working_pods(work, use, witness, observation.pods)
        anybodys = _anybodys(working, use, past, policy)
        pods: dict[str, float] = {} if isinstance(working, int) else working
        look = Look(sample, use, work, witness, pods, policy, now)
        cards[uuid] = _card(past if whole else None, look, since, anybodys)
        if anybodys:
            tracks |= _unknown(use, memory, anybodys)
            continue
        tracks |= {
            (uid, uuid): _next(memory.tracks.get((uid, uuid)), look, uid, since, whole=whole)
            for uid in use.pods
        }
    return pods_watched(
        observation, memory, cards, tracks, troubles, mean_seconds=policy.mean_seconds, now=now
    )


def _anybodys(
    working: dict[str, float] | int, use: CardUse, past: CardTrack | None, policy: ActivityPolicy
) -> str:
    """Return what was done on a card by somebody who may be anybody there."""
    if isinstance(working, int):
        return f"process {working} works there, and nobody knows whose it is"
    if past is not None and moved_unseen(use, past, policy):
        return "its memory moves faster than processes are listed"
    return ""


def _card(past: CardTrack | None, look: Look, hidden: float | None, anybodys: str) -> CardTrack:
    """
    Return what is known of a card after an answer; `past` is None where that answer leaves a hole.
    """
    work = look.work
    doubt = anybodys or nameless(work, look.use)
    clear_since = look.now if past is None or doubt else past.clear_since
    if past is None:
        doubt = doubt or _HOLE
    elif hidden is not None and not doubt:
        doubt = _HIDDEN
        if work.until - hidden >= look.policy.hidden_seconds:
            clear_since = look.now
    return CardTrack(
        work.until, used_on(look.use), hidden, work.since, look.working, clear_since, doubt
    )


def _answered(observation: Observation, memory: ActivityMemory) -> Iterator[CardSample]:
    """Yield the cards that have something new to say."""
    for sample in observation.sample.cards:
        past = memory.cards.get(sample.card.uuid)
        if sample.work is not None and (past is None or past.until != sample.work.until):
            yield sample


def _next(past: Track | None, look: Look, uid: str, hidden: float | None, *, whole: bool) -> Track:
    """Follow a pod on a card over one more answer."""
    track = weighed(past or Track(), look, look.use.pods[uid])
    if track.activity is Activity.UNKNOWN:
        return _lost(track, track.why)
    if track.evidence is Evidence.KERNELS:
        return track._replace(idle_since=look.now)
    if hidden is not None and look.work.until - hidden >= look.policy.hidden_seconds:
        return _lost(track, _HIDDEN)
    if not whole or past is None or past.idle_since is None:
        return _doubtful(track._replace(idle_since=look.now), _HOLE)
    if track.activity is Activity.BUSY:
        return track._replace(idle_since=look.now)
    return track if hidden is None else _doubtful(track, _HIDDEN)


def _doubtful(track: Track, why: str) -> Track:
    """Say that nobody knows at the moment, while what was known is not lost yet."""
    return track._replace(activity=Activity.UNKNOWN, evidence=Evidence.NOT_MEASURABLE, why=why)


def _lost(track: Track, why: str) -> Track:
    return _doubtful(track, why)._replace(idle_since=None)


def _unknown(use: CardUse, memory: ActivityMemory, why: str) -> Iterator[tuple[UseKey, Track]]:
    uuid = use.card.uuid
    for uid in use.pods:
        yield (uid, uuid), _lost(memory.tracks.get((uid, uuid), Track()), why)


def _as_before(use: CardUse, memory: ActivityMemory) -> Iterator[tuple[UseKey, Track]]:
    """Keep what is known of those who are still there; of who has come since nothing is."""
    uuid = use.card.uuid
    for uid in use.pods:
        track = memory.tracks.get((uid, uuid))
        yield (uid, uuid), Track(why=_HOLE) if track is None else track
