"""
PURE. One line for each owner of GPU pods: whether its pods use what they hold, and what the
controller makes of it; as a table and as JSON.

Agents say what is so at this moment, the controller what it will do. Where no controller runs
nothing will be done, and what the agents say is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.quantity import GIB
from gpufence.text import duration
from gpufence.times import write_moment
from kubectl_gpufence.cluster_view import is_stale, named, row_of
from kubectl_gpufence.verdicts import EVIDENCE
from kubectl_gpufence.view import (
    NOT_THERE,
    UNKNOWN,
    Cell,
    Field,
    Rows,
    Tone,
    counted,
    exact,
    gibibytes,
    total_of,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.idle import OwnerRelease, OwnerReleases
    from gpufence.snapshot import Snapshot
    from kube.owners import ApiOwner
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.view import Display


BUSY: Final = "busy"
IDLE: Final = "idle"
WAITS: Final = "waiting"
NOT_KNOWN: Final = "unknown"
RELEASED: Final = "released"
_OVERRULING: Final = frozenset({RELEASED, "kept"})
"""States of the controller that say more than what the pods do."""
_HOUR: Final = 3600.0
_RELEASES: Final = "release"
_TONES: Final = {IDLE: Tone.WARN, NOT_KNOWN: Tone.FAINT, RELEASED: Tone.FAINT}


class OwnedPod(NamedTuple):
    """A living GPU pod and whose it is in the end; it `waits` where no node takes it."""

    seen: SeenPod
    top: ApiOwner
    waits: bool = False


class SeenOwners(NamedTuple):
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
        return total_of([use.held_bytes for use in self.placed], none=0)

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
            return self._newer or self.said.why
        return next((f"{use.pod.name}: {use.why}" for use in self.uses if use.why), "")

    @property
    def _newer(self) -> str:
        """Return what agents say that the controller does not know yet; empty where they agree."""
        said = "" if self.said is None else self.said.state
        if (self.state, said) == (IDLE, BUSY):
            return "the controller waits until its pods have been idle for longer"
        return "it is in use again" if (self.state, said) == (BUSY, IDLE) else ""

    @property
    def waiters(self) -> tuple[str, ...]:
        return () if self.said is None else self.said.waiters

    @property
    def due_seconds(self) -> float | None:
        """Return after which time it goes; None where nothing is planned."""
        if self.said is None or self.said.deadline is None:
            return None
        return max(self.said.deadline - self.at, 0.0)


def idle_lines(cluster: SeenOwners, namespace: str) -> list[IdleLine]:
    """Return the owners of a namespace, or of all, by how much they have held in vain."""
    releases = cluster.releases
    at = 0.0 if releases is None else releases.at
    said = {
        _key(item.namespace, item.api_version, item.kind, item.name): item
        for item in (() if releases is None else releases.owners)
        if namespace in ("", item.namespace)
    }
    pods: dict[tuple[str, str, str, str], list[OwnedPod]] = {}
    for item in cluster.pods:
        pods.setdefault(_key_of(item.top), []).append(item)
    lines = [
        _line(pods.get(key, []), said.get(key), cluster.snapshots, at) for key in {**pods, **said}
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
        pod,
        activity.state,
        activity.idle_seconds,
        total_of([use.used_bytes for use in row.uses], none=0),
        activity.evidence,
        activity.why,
    )


def _rank(line: IdleLine) -> tuple[float, float, str, str]:
    return -(line.gib_hours or 0.0), -(line.idle_seconds or 0.0), line.namespace, line.owner


def _pods(line: IdleLine) -> str:
    """Write how many pods there are of how many that are wanted."""
    there = str(len(line.uses))
    return there if line.replicas is None else f"{there}/{line.replicas}"


def _state(line: IdleLine) -> Cell:
    return Cell(line.state, _TONES.get(line.state, Tone.PLAIN))


def _idle(line: IdleLine) -> str:
    if not line.placed:
        return NOT_THERE
    seconds = line.idle_seconds
    return UNKNOWN if seconds is None else duration(seconds) if seconds else NOT_THERE


def _held(line: IdleLine) -> str:
    return gibibytes(line.held_bytes) if line.placed else NOT_THERE


def _gib_hours(line: IdleLine) -> str:
    if not line.placed or line.idle_seconds == 0.0:
        return NOT_THERE
    return UNKNOWN if line.gib_hours is None else f"{line.gib_hours:.1f}"


def release_text(line: IdleLine) -> str:
    """Return when an owner goes, or since when it is gone, in few words."""
    said, due = line.said, line.due_seconds
    if said is None:
        return NOT_THERE
    if said.state == RELEASED:
        return _released(said, line.at)
    if due is None:
        return "no"
    when = f"in {duration(due)}" if due else "now"
    return when if said.rung == _RELEASES else f"({when}: {said.rung or 'no rung'})"


def _released(said: OwnerRelease, at: float) -> str:
    return RELEASED if said.note is None else f"{duration(at - said.note.at)} ago"


def _deadline(line: IdleLine) -> str | None:
    said = line.said
    return None if said is None or said.deadline is None else write_moment(said.deadline)


def _waiters(line: IdleLine) -> Cell:
    waiters = line.waiters
    return Cell(named(waiters), Tone.WARN) if waiters else Cell(NOT_THERE, Tone.FAINT)


def _evidence(line: IdleLine) -> list[str]:
    words = {use.evidence for use in line.uses if use.evidence}
    return sorted(EVIDENCE.get(word, word) for word in words)


def _evidence_text(line: IdleLine) -> str:
    return ", ".join(_evidence(line)) or NOT_THERE


def _nodes(line: IdleLine) -> list[str]:
    return sorted({use.pod.node for use in line.uses if use.pod.node})


IDLE_FIELDS: Final[tuple[Field[IdleLine], ...]] = (
    Field("namespace", lambda line: line.namespace, "NAMESPACE", shrinks=True, spare=5),
    Field("apiVersion", lambda line: line.api_version),
    Field("kind", lambda line: line.kind),
    Field("name", lambda line: line.name, "OWNER", lambda line: line.owner, shrinks=True),
    Field("replicas", lambda line: line.replicas),
    Field(
        "pods", lambda line: [use.pod.name for use in line.uses], "PODS", _pods, right=True, spare=3
    ),
    Field("nodes", _nodes, "NODES", lambda line: ",".join(_nodes(line)) or NOT_THERE, wide=2),
    Field("state", lambda line: line.state, "STATE", _state),
    Field("idle", lambda line: line.idle_seconds, "IDLE", _idle, right=True, spare=6),
    Field("evidence", _evidence, "EVIDENCE", _evidence_text, wide=1),
    Field("held", lambda line: exact(line.held_bytes), "HELD", _held, right=True, spare=4),
    Field("gibHours", lambda line: line.gib_hours, "GIB-H", _gib_hours, right=True, spare=2),
    Field("deadline", _deadline, "RELEASE", release_text),
    Field("step", lambda line: line.said.step if line.said else ""),
    Field("rung", lambda line: line.said.rung if line.said else ""),
    Field("contended", lambda line: line.said.contended if line.said else None),
    Field("waiters", lambda line: list(line.waiters), "WAITING", _waiters, shrinks=True, spare=1),
    Field("why", lambda line: line.why, "WHY", wide=3),
)
"""What is said of an owner."""


def idle_listing(
    lines: Sequence[IdleLine], namespace: str, nothing: str, notes: Sequence[str]
) -> Rows[IdleLine]:
    """Put the owners of a namespace, or of all, together with what is missing."""
    left_out = ("NAMESPACE",) if namespace else ()
    return Rows("owners", IDLE_FIELDS, lines, nothing, notes, left_out)


def plan_lines(listing: Rows[IdleLine], display: Display) -> list[str]:
    """Show what the controller will do and when, each with its reason below it."""
    shorter = listing._replace(without=(*listing.without, "PODS", "HELD", "GIB-H", "WAITING"))
    head, *rows = shorter.table(display, wide=False)
    shown = [head]
    for line, row in zip(listing.rows, rows, strict=True):
        shown += [row, *(wrapped(line.why, "    ", display) if line.why else ())]
    return shown
