"""PURE. What one answer about a card says of each pod on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from agent.model.activity import Activity, Evidence, Track
from agent.model.use import MPS_SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.model.activity import ActivityPolicy, CardTrack, CpuTime, Witness
    from agent.model.pod import PodsOnNode
    from agent.model.sample import CardSample, CardWork
    from agent.model.use import CardUse, Occupant, PodOnCard


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
        return "work is done there, and nobody knows whose it is"
    for process in use.processes:
        if process.occupant is None:
            return f"process {process.pid} is there, and nobody knows whose it is"
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
