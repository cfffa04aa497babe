"""PURE. Lines of owners as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.text import duration
from gpufence.times import write_moment
from kubectl_gpufence.idle.lines import IDLE, NOT_KNOWN, RELEASED
from kubectl_gpufence.scene import named
from kubectl_gpufence.table import (
    NOT_THERE,
    UNKNOWN,
    Cell,
    Column,
    Tone,
    exact,
    gibibytes,
    table,
    wrapped,
)
from kubectl_gpufence.verdicts import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.releases import OwnerRelease
    from kubectl_gpufence.idle.lines import IdleLine
    from kubectl_gpufence.table import Display

_RELEASES: Final = "release"
_TONES: Final = {IDLE: Tone.WARN, NOT_KNOWN: Tone.FAINT, RELEASED: Tone.FAINT}


def idle_table(
    lines: Sequence[IdleLine], display: Display, *, namespaces: bool, wide: bool
) -> list[str]:
    columns: list[Column[IdleLine]] = [
        Column("NAMESPACE", lambda line: line.namespace, shrinks=True),
        Column("OWNER", lambda line: line.owner, shrinks=True),
        Column("PODS", _pods, right=True),
        Column("STATE", _state),
        Column("IDLE", _idle, right=True),
        Column("HELD", _held, right=True),
        Column("GIB-H", _gib_hours, right=True),
        Column("RELEASE", release_text),
        Column("WAITING", _waiters, shrinks=True),
    ]
    if wide:
        columns += [
            Column("EVIDENCE", lambda line: ", ".join(_evidence(line)) or NOT_THERE),
            Column("NODES", lambda line: ",".join(_nodes(line)) or NOT_THERE),
            Column("WHY", lambda line: line.why or NOT_THERE),
        ]
    return table(columns if namespaces else columns[1:], lines, display)


def plan_lines(lines: Sequence[IdleLine], display: Display, *, namespaces: bool) -> list[str]:
    """Show what the controller will do and when, each with its reason below it."""
    columns: list[Column[IdleLine]] = [
        Column("NAMESPACE", lambda line: line.namespace, shrinks=True),
        Column("OWNER", lambda line: line.owner, shrinks=True),
        Column("STATE", _state),
        Column("IDLE", _idle, right=True),
        Column("RELEASE", release_text),
    ]
    head, *rows = table(columns if namespaces else columns[1:], lines, display)
    shown = [head]
    for line, row in zip(lines, rows, strict=True):
        shown += [row, *(wrapped(line.why, "    ", display) if line.why else ())]
    return shown


def idle_json(line: IdleLine) -> dict[str, object]:
    said = line.said
    return {
        "namespace": line.namespace,
        "apiVersion": line.api_version,
        "kind": line.kind,
        "name": line.name,
        "replicas": line.replicas,
        "pods": [use.pod.name for use in line.uses],
        "nodes": _nodes(line),
        "state": line.state,
        "idle": line.idle_seconds,
        "evidence": _evidence(line),
        "held": exact(line.held_bytes),
        "gibHours": line.gib_hours,
        "deadline": None if not said or said.deadline is None else write_moment(said.deadline),
        "step": said.step if said else "",
        "rung": said.rung if said else "",
        "contended": said.contended if said else None,
        "waiters": list(said.waiters) if said else [],
        "why": line.why,
    }


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


def _waiters(line: IdleLine) -> Cell:
    waiters = () if line.said is None else line.said.waiters
    return Cell(named(waiters), Tone.WARN) if waiters else Cell(NOT_THERE, Tone.FAINT)


def _evidence(line: IdleLine) -> list[str]:
    words = {use.evidence for use in line.uses if use.evidence}
    return sorted(EVIDENCE.get(word, word) for word in words)


def _nodes(line: IdleLine) -> list[str]:
    return sorted({use.pod.node for use in line.uses if use.pod.node})
