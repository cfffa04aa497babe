"""
PURE. What a check found, and how it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.findings import Finding, Level
from kubectl_gpufence.table import Tone, coloured, wrapped
from kubectl_gpufence.words import counted, safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kubectl_gpufence.table import Look


_TONES = {
    Level.OK: Tone.GOOD,
    Level.LOOK: Tone.WARN,
    Level.WRONG: Tone.BAD,
    Level.UNKNOWN: Tone.FAINT,
}
_LEVEL_WIDTH = 9
_SUBJECT_WIDTH = 14


def is_wrong(findings: Iterable[Finding]) -> bool:
    return any(item.level is Level.WRONG for item in findings)


def told(findings: Sequence[Finding], place: Look) -> Iterator[str]:
    """
    Tell the findings, each remedy below its own, and the sum of them.
    """
    indent = " " * (_LEVEL_WIDTH + _SUBJECT_WIDTH)
    for item in findings:
        lines = wrapped(safe(item.text), indent, place, first=indent)
        level = str(item.level).upper() if item.level is Level.WRONG else str(item.level)
        shown = coloured(level, _TONES[item.level], place) + " " * (_LEVEL_WIDTH - len(level))
        yield f"{shown}{item.subject:{_SUBJECT_WIDTH}}{lines[0].strip()}"
        yield from lines[1:]
        if item.remedy:
            yield from wrapped(safe(item.remedy), f"{indent}   ", place, first=f"{indent}-> ")
    yield ""
    yield _sum(findings)


def told_json(findings: Iterable[Finding]) -> list[dict[str, str]]:
    return [
        {
            "level": str(item.level),
            "subject": item.subject,
            "said": item.text,
            "remedy": item.remedy,
        }
        for item in findings
    ]


def _sum(findings: Sequence[Finding]) -> str:
    count = {level: sum(1 for item in findings if item.level is level) for level in Level}
    if count[Level.WRONG]:
        verb = "is" if count[Level.WRONG] == 1 else "are"
        return f"{counted(count[Level.WRONG], 'thing')} {verb} wrong"
    if count[Level.UNKNOWN]:
        return f"nothing wrong was found, and {count[Level.UNKNOWN]} could not be found out"
    if count[Level.LOOK]:
        return f"nothing is wrong, {count[Level.LOOK]} worth a look"
    return "all is well"
