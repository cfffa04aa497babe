"""
PURE. One line for each owner of GPU pods: who of them uses what he holds, and what the controller
makes of it.

Agents say what is so at this moment, the controller what it will do. Where no controller runs
nothing will be done, and what the agents say is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.quantity import GIB
from kubectl_gpufence.scene import is_stale, named, row_of
from kubectl_gpufence.table import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.releases import OwnerRelease, OwnerReleases
    from gpufence.snapshot import PodRow, Snapshot
    from kube.owners import ApiOwner
    from kubectl_gpufence.pods import SeenPod

BUSY: Final = "busy"
IDLE: Final = "idle"
WAITS: Final = "waiting"
NOT_KNOWN: Final = "unknown"
RELEASED: Final = "released"
_OVERRULING: Final = frozenset({RELEASED, "kept"})
"""States of the controller that say more than what the pods do."""
_HOUR: Final = 3600.0


class OwnedPod(NamedTuple):
    """A living GPU pod and whose it is in the end; it `waits` where no node takes it."""

    seen: SeenPod
    top: ApiOwner
    waits: bool = False


class IdleScene(NamedTuple):
    """
    All that was asked: pods, snapshots by node, and what the controller says, None without one.
    """

    pods: tuple[OwnedPod, ...] = ()
    snapshots: Mapping[str, Snapshot] = {}
    releases: OwnerReleases | None = None
    notes: tuple[str, ...] = ()


class PodUse(NamedTuple):
    """What one pod does and holds; `why` says what stands against knowing."""

    pod: SeenPod
    state: str
    idle_seconds: float | None = None
    held_bytes: int | None = None
    evidence: str = ""
    why: str = ""


class IdleLine(NamedTuple):
    """One owner. `said` is what the controller says of it, at the moment `at`."""

    namespace: str
    api_version: str
    kind: str
    name: str
    replicas: int | None
    uses: tuple[PodUse, ...] = ()
    said: OwnerRelease | None = None
    at: float = 0.0

    @property
    def owner(self) -> str:
        """Return its name as the other verbs take it."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def placed(self) -> list[PodUse]:
        return [use for use in self.uses if use.state != WAITS]

    @property
    def state(self) -> str:
        if self.said is not None and (self.said.state in _OVERRULING or not self.uses):
            return self.said.state
        states = {use.state for use in self.uses}
        return next((item for item in (BUSY, NOT_KNOWN, IDLE) if item in states), WAITS)

    @property
    def idle_seconds(self) -> float | None:
        """
        Return for how long all its pods have been idle; 0 while one is busy, None where one of them
        is unknown or none runs.
        """
        known = [use.idle_seconds for use in self.placed]
        idle = [seconds for seconds in known if seconds is not None]
        if any(use.state == BUSY for use in self.uses):
            return 0.0
        return min(idle) if idle and len(idle) == len(known) else None

    @property
    def held_bytes(self) -> int | None:
        known = [use.held_bytes for use in self.placed]
        held = [amount for amount in known if amount is not None]
        return sum(held) if len(held) == len(known) else None

    @property
    def gib_hours(self) -> float | None:
        """Return how much was held in vain, for how long."""
        if self.held_bytes is None or self.idle_seconds is None:
            return None
        return self.held_bytes / GIB * self.idle_seconds / _HOUR

    @property
    def why(self) -> str:
        """Return what the controller says, or what stands against knowing."""
        if self.said is not None:
            return self.said.why
        return next((f"{use.pod.name}: {use.why}" for use in self.uses if use.why), "")

    @property
    def due_seconds(self) -> float | None:
        """Return after which time it goes; None where nothing is planned."""
        if self.said is None or self.said.deadline is None:
            return None
        return max(self.said.deadline - self.at, 0.0)


def idle_lines(scene: IdleScene, namespace: str) -> list[IdleLine]:
    """Return the owners of a namespace, or of all, by how much they have held in vain."""
    releases = scene.releases
    at = 0.0 if releases is None else releases.at
    said = {
        _key(item.namespace, item.api_version, item.kind, item.name): item
        for item in (() if releases is None else releases.owners)
        if namespace in ("", item.namespace)
    }
    pods: dict[tuple[str, str, str, str], list[OwnedPod]] = {}
    for item in scene.pods:
        pods.setdefault(_key_of(item.top), []).append(item)
    lines = [
        _line(pods.get(key, []), said.get(key), scene.snapshots, at) for key in {**pods, **said}
    ]
    return sorted(lines, key=_rank)


def is_about(line: IdleLine, owner: ApiOwner) -> bool:
    return _key(line.namespace, line.api_version, line.kind, line.name) == _key_of(owner)


def waiting_note(lines: Iterable[IdleLine]) -> str:
    """Return who waits for a GPU."""
    waiting = [
        f"{use.pod.namespace}/{use.pod.name}"
        for line in lines
        for use in line.uses
        if use.state == WAITS
    ]
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"{counted(len(waiting), 'pod')} {verb} for a GPU: {named(waiting)}" if waiting else ""


def _key(namespace: str, api_version: str, kind: str, name: str) -> tuple[str, str, str, str]:
    """Return whom a line is about, in whichever version of its group."""
    return namespace, api_version.rpartition("/")[0], kind, name


def _key_of(owner: ApiOwner) -> tuple[str, str, str, str]:
    return _key(owner.namespace, owner.kind.api_version, owner.kind.kind, owner.name)


def _line(
    items: Sequence[OwnedPod],
    said: OwnerRelease | None,
    snapshots: Mapping[str, Snapshot],
    at: float,
) -> IdleLine:
    uses = tuple(use_of(item, snapshots.get(item.seen.node)) for item in items)
    if not items and said is not None:
        return IdleLine(*said[:4], replicas=said.replicas, said=said, at=at)
    top = items[0].top
    kind = top.kind
    replicas = top.replicas if said is None else said.replicas
    return IdleLine(top.namespace, kind.api_version, kind.kind, top.name, replicas, uses, said, at)


def use_of(item: OwnedPod, snapshot: Snapshot | None) -> PodUse:
    """Return what a pod does, as far as its agent says so at this moment."""
    pod = item.seen
    if not pod.node:
        return PodUse(pod, WAITS, why="no node takes it" if item.waits else "no node has it yet")
    if snapshot is None:
        return PodUse(pod, NOT_KNOWN, why=f"no agent of node {pod.node} answers")
    row = row_of(pod, snapshot)
    if is_stale(snapshot):
        return PodUse(pod, NOT_KNOWN, why=f"what the agent of node {pod.node} knows is too old")
    activity = None if row is None else row.activity
    if row is None or activity is None:
        return PodUse(pod, NOT_KNOWN, why=f"the agent of node {pod.node} says nothing of it")
    return PodUse(
        pod, activity.state, activity.idle_seconds, _held(row), activity.evidence, activity.why
    )


def _held(row: PodRow) -> int | None:
    known = [use.used_bytes for use in row.uses]
    held = [amount for amount in known if amount is not None]
    return sum(held) if len(held) == len(known) else None


def _rank(line: IdleLine) -> tuple[float, float, str, str]:
    return -(line.gib_hours or 0.0), -(line.idle_seconds or 0.0), line.namespace, line.owner
