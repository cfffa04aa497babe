"""
PURE. What each pod does on each card, from one look to the next.

A pod is busy if anything says so, and idle only if everything that could say so was watched without
a hole and said nothing. What nobody can tell makes it unknown, and its time begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.activity.model import (
    NO_ACTIVITY,
    Activity,
    ActivityMemory,
    CardTrack,
    Evidence,
    Track,
)
from agent.concerns.activity.pods import pods_watched
from agent.model.use import MPS_SERVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.concerns.activity.model import ActivityPolicy, Witness
    from agent.model.pod import PodsOnNode
    from agent.model.sample import CardSample, CardWork
    from agent.model.use import CardUse, CpuTime, Observation, Occupant, PodOnCard, UseKey

_HIDDEN: Final = "the card is busy while no process that is known is"
_HOLE: Final = "it is watched only since a moment ago"


def pids_to_read(observation: Observation, memory: ActivityMemory) -> set[int]:
    """
    Return the processes whose CPU time is to be read from the kernel: of pods, on the
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
    """Return workers that no list has yet: they have started since, or have already ended."""
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
        return f"process {working} works there, which cannot be attributed"
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


@dataclass(frozen=True, slots=True)
class Look:
    """One answer about one card, with all that is known besides."""

    sample: CardSample
    use: CardUse
    work: CardWork
    witness: Witness
    working: Mapping[str, float]
    policy: ActivityPolicy
    now: float


def known_processes(use: CardUse) -> dict[int, Occupant]:
    """Return those on a card's list who could be looked up."""
    return {item.pid: item.occupant for item in use.processes if item.occupant is not None}


def working_pods(
    work: CardWork, use: CardUse, witness: Witness, pods: PodsOnNode
) -> dict[str, float] | int:
    """
    Return who worked for which share of the time, or a process that did and of whom nobody knows
    whose it is: it has ended since, or is hidden from us.

    Work needs less proof than memory: the cgroup's pod counts before the API server has confirmed
    the container.
    """
    if work.workers is None:
        share = min(work.percent / 100, 1.0)
        return dict.fromkeys(use.pods, share) if share > 0 else {}
    found: dict[str, float] = {}
    known = known_processes(use)
    for pid, share in work.workers.items():
        occupant = known.get(pid) or witness.strangers.get(pid)
        if occupant is None:
            return pid
        pod = _pod_of(occupant, pods)
        if pod is not None:
            found[pod] = min(found.get(pod, 0.0) + share, 1.0)
    return found


def _pod_of(occupant: Occupant, pods: PodsOnNode) -> str | None:
    owner = occupant.owner
    if owner is None:
        return None
    if owner.pod_uid is None:
        confirmed = pods.find(owner)
        return None if confirmed is None else confirmed[0].uid
    pod = pods.by_cgroup.get(owner.pod_uid)
    return None if pod is None else pod.uid


def spoiled(sample: CardSample, use: CardUse, now: float, policy: ActivityPolicy) -> str:
    """Return why nothing can be known of anybody on a card, nothing if something can."""
    if sample.memory is None or use.listed_at is None:
        return sample.trouble.text or "the card cannot be read"
    if use.mps or any(item.command == MPS_SERVER for item in known_processes(use).values()):
        return "MPS is on the card: what its clients do counts as the server's"
    if sample.work is None:
        return sample.work_trouble.text or "it has not been asked what is done on the card"
    if sample.work.garbled:
        return "the driver gives figures that cannot be, as it does of processes that died badly"
    if now - sample.work.until > policy.gap_seconds:
        return "nothing was heard of the card for too long"
    return ""


def used_on(use: CardUse) -> int:
    return 0 if use.memory is None else use.memory.used_bytes


def moved_unseen(use: CardUse, past: CardTrack, policy: ActivityPolicy) -> bool:
    """
    Return whether the card holds another amount than before while the list of its processes is from
    before: a driver that is slow with lists hides who is loading.
    """
    old = use.listed_at is None or use.listed_at <= past.until
    return old and abs(used_on(use) - past.used_bytes) >= policy.moved_bytes


def hidden_since(work: CardWork, past: CardTrack | None, policy: ActivityPolicy) -> float | None:
    """Return since when a card is busy while nobody who is known is."""
    if work.workers is None or work.workers or work.percent < policy.hidden_percent:
        return None
    if past is None or past.hidden_since is None:
        return work.since
    return past.hidden_since


def nameless(work: CardWork, use: CardUse) -> str:
    """Return what on a card may be a pod's that is not known to be there."""
    if work.workers is None and work.percent > 0 and not use.pods:
        return "work there cannot be attributed"
    for process in use.processes:
        if process.occupant is None:
            return f"process {process.pid} is there, which cannot be attributed"
    return ""


def weighed(past: Track, look: Look, use: PodOnCard) -> Track:
    """Return what one answer says of a pod; `past` is what it is compared with."""
    if use.used_bytes is None:
        return past._replace(activity=Activity.UNKNOWN, why="the driver hides what it holds")
    held = _held(use, look.witness.cpu)
    # From where it last moved to, and from the last look: little by little, or to and fro.
    before = (past.used_bytes, past.last_bytes)
    moved = any(abs(use.used_bytes - each) >= look.policy.moved_bytes for each in before)
    works = look.working.get(use.pod.uid)
    of_cpu = _cpu_share(past, held.cpu, look.witness.at)
    computes = of_cpu >= look.policy.cpu_share
    share = min((works or 0.0) + (of_cpu if computes else 0.0), 1.0)
    activity, evidence, why = Activity.IDLE, Evidence.NOTHING, ""
    if works is not None:
        activity, evidence = Activity.BUSY, Evidence.KERNELS
    elif moved or held.processes != past.processes:
        activity, evidence = Activity.BUSY, Evidence.LOADING
    elif held.counting and not held.cpu:
        activity, evidence = Activity.UNKNOWN, Evidence.NOT_MEASURABLE
        why = "its CPU time cannot be read"
    elif computes:
        activity, evidence = Activity.BUSY, Evidence.CPU
    return Track(
        activity,
        evidence,
        why,
        past.idle_since,
        past.busy_seconds + share * (look.work.until - look.work.since),
        share,
        use.used_bytes if moved else past.used_bytes,
        held.processes,
        held.cpu,
        look.witness.at,
        use.used_bytes,
    )


class _Held(NamedTuple):
    """The processes of a pod on a card, whether the CPU of any counts, and what those have used."""

    processes: frozenset[tuple[int, int]]
    counting: bool
    cpu: Mapping[int, CpuTime]


def _held(use: PodOnCard, known: Mapping[int, CpuTime]) -> _Held:
    """Return who is there; the CPU time of a PID is only that of the process it was listed as."""
    ignored = use.pod.cpu_ignored
    processes, counting = [], False
    cpu: dict[int, CpuTime] = {}
    for item in use.processes:
        started = item.occupant.started_ticks if item.occupant else 0
        processes.append((item.pid, started))
        if item.container not in ignored:
            counting = True
            time = known.get(item.pid)
            if time is not None and time.started_ticks == started:
                cpu[item.pid] = time
    return _Held(frozenset(processes), counting, cpu)


def _cpu_share(past: Track, cpu: Mapping[int, CpuTime], at: float) -> float:
    """Return which share of a core the processes took since the look before."""
    used, before = 0.0, past.cpu
    for pid, time in cpu.items():
        if pid in before:
            used += time.seconds - before[pid].seconds
    return used / max(at - past.cpu_at, 1e-3)
