"""Passes of the controller over small clusters, written down as lines that a person can review."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from controller.decide import decide
from controller.model import (
    Act,
    Announcement,
    ClusterState,
    NoticeGiven,
    OwnerState,
    ReleaseMemory,
    ReleaseRules,
    Standing,
)
from gpufence import names
from gpufence.idle import write_note
from tests.support.golden import assert_cases
from tests.support.release import NOW, cluster, idle_pod, owner_state, waiting_pod

RULES = ReleaseRules()
EMPTY = ReleaseMemory()
GPU = names.NVIDIA_GPU
JOB = waiting_pod(requests={GPU: 2})
"""It needs both cards of a node, of which a worker has one."""


class Case(NamedTuple):
    """What the leader remembers at first, and the cluster as it is at each of its passes."""

    memory: ReleaseMemory
    worlds: tuple[ClusterState, ...]


Cases = Mapping[str, Case]


def at(*worlds: ClusterState, memory: ReleaseMemory = EMPTY) -> Case:
    return Case(memory, worlds)


def of(*owners: OwnerState, memory: ReleaseMemory = EMPTY, **more: Any) -> Case:
    """Make one pass over these owners."""
    return at(cluster(*owners, **more), memory=memory)


def told(*owners: OwnerState, at: float = NOW - 300, deadline: float = NOW) -> ReleaseMemory:
    """Remember that owners were announced."""
    given = NoticeGiven(Announcement(at, deadline))
    return ReleaseMemory(announced={owner.uid: given for owner in owners})


def worker(
    name: str = "a", minutes: float = 30.0, cards: int = 1, node: str = "node-1", **changes: Any
) -> OwnerState:
    """Build an owner of one pod that has been idle for so long."""
    pod = idle_pod(f"{name}-0", minutes=minutes, requests={GPU: cards}, node=node)
    return owner_state(pod, name=name, **changes)


def assert_decided(name: str, cases: Cases, shown: Callable[[Case], Iterator[str]]) -> None:
    """Compare what is decided in each case with the file of that name."""
    file = Path(__file__).with_name(f"{name}.txt")
    assert_cases(file, {title: shown(case) for title, case in cases.items()})


def whole(case: Case) -> Iterator[str]:
    """Show all that is decided in each pass, and what is remembered of it."""
    memory = case.memory
    for world in case.worlds:
        decision = decide(world, memory, RULES)
        memory = decision.memory
        yield f"  {moment(world.now)} {decision.brake}".rstrip()
        for act in decision.acts:
            yield from _act(act)
        yield from (f"    {standing(each)}" for each in decision.standings.values())
        yield from _remembered(memory)


def standings(case: Case) -> Iterator[str]:
    """Show how each owner stands after one pass."""
    (world,) = case.worlds
    for each in decide(world, case.memory, RULES).standings.values():
        yield f"  {standing(each)}"


def standing(item: Standing) -> str:
    since = "" if item.idle_since is None else f", idle since {moment(item.idle_since)}"
    due = "" if item.deadline is None else f", due {moment(item.deadline)}"
    waiters = f", for {' and '.join(item.waiters)}" if item.contended or item.waiters else ""
    return f"{item.key.name}: {item.state}, {item.step}{since}{due}{waiters}: {item.why}"


def moment(seconds: float) -> str:
    return f"{seconds - NOW:+g}"


def _act(act: Act) -> Iterator[str]:
    replicas = "" if act.replicas is None else f" to {act.replicas}"
    idle = f" after {act.threshold_seconds:g} s" if act.threshold_seconds else ""
    yield f"    {act.step} {act.key.name} ({act.uid}, version {act.version}){replicas}{idle}"
    if act.reason or act.message:
        yield f"      {act.reason}: {act.message}"
    for word, note in (("note", act.note), ("then", act.done)):
        if note is not None:
            yield f"      {word} {write_note(note)}"


def _remembered(memory: ReleaseMemory) -> Iterator[str]:
    for uid, given in memory.announced.items():
        words = zip(("usual", "contended"), given, strict=True)
        said = ", ".join(f"{w} {moment(x.at)} for {moment(x.deadline)}" for w, x in words if x)
        yield f"    told {uid}: {said}"
    for key, since in memory.free_since.items():
        yield f"    {key.name} would fit since {moment(since)}"
    if memory.suspended_until:
        yield f"    suspended until {moment(memory.suspended_until)}"
