"""`doctor`: whether everything is installed, running and seen; what is wrong has its remedy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpufence.errors import Finding, Level
from kubectl_gpufence.arguments import add_output
from kubectl_gpufence.verbs.doctor.checks_agents import (
    check_agents,
    check_claims,
    check_namespaces,
    check_scaling,
)
from kubectl_gpufence.verbs.doctor.checks_driver import check_driver
from kubectl_gpufence.verbs.doctor.checks_webhook import check_rights, check_server, check_webhook
from kubectl_gpufence.verbs.doctor.read import read_installation
from kubectl_gpufence.view import Cell, Field, Tone, coloured, counted, records, wrapped

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.doctor.installation import Installation
    from kubectl_gpufence.view import Display

EXAMPLES: Final = """\
examples:
  kubectl gpufence doctor                     every check, with a remedy for what is wrong
  kubectl gpufence doctor -o json | jq '.checks[] | select(.level == "wrong")'

exit code: 0 well, or worth a look at most; 1 something is wrong
"""

_WELL, _WRONG = 0, 1
_TONES = {
    Level.OK: Tone.GOOD,
    Level.LOOK: Tone.WARN,
    Level.WRONG: Tone.BAD,
    Level.UNKNOWN: Tone.FAINT,
}
FINDING_FIELDS: Final[tuple[Field[Finding], ...]] = (
    Field("level", lambda item: str(item.level)),
    Field("subject", lambda item: item.subject),
    Field("said", lambda item: item.text),
    Field("remedy", lambda item: item.remedy),
)
"""What programs read of a finding."""

_LEVEL_WIDTH = 9
_SUBJECT_WIDTH = 14


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "table", "json")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """Check everything; 1 where something is wrong."""
    findings = examine(read_installation(reader))
    if call.output == "json":
        output.json({"v": 1, "checks": records(FINDING_FIELDS, findings)})
    else:
        output.lines(findings_lines(findings, output.display))
    return _WRONG if is_wrong(findings) else _WELL


def examine(installation: Installation) -> list[Finding]:
    """Make every check, from the ground up."""
    return [
        *check_server(installation),
        *check_rights(installation),
        *check_webhook(installation),
        *check_agents(installation),
        *check_driver(installation),
        *check_namespaces(installation),
        *check_claims(installation),
        *check_scaling(installation),
    ]


def is_wrong(findings: Iterable[Finding]) -> bool:
    return any(item.level is Level.WRONG for item in findings)


def findings_lines(findings: Sequence[Finding], display: Display) -> Iterator[str]:
    """Write the findings, each remedy below its own, and the sum of them."""
    indent = " " * (_LEVEL_WIDTH + _SUBJECT_WIDTH)
    for item in findings:
        lines = wrapped(item.text, indent, display, first=indent)
        level = str(item.level).upper() if item.level is Level.WRONG else str(item.level)
        padding = " " * (_LEVEL_WIDTH - len(level))
        shown = coloured(Cell(level, _TONES[item.level]), display)
        yield f"{shown}{padding}{item.subject:{_SUBJECT_WIDTH}}{lines[0].strip()}"
        yield from lines[1:]
        if item.remedy:
            yield from wrapped(item.remedy, f"{indent}   ", display, first=f"{indent}-> ")
    yield ""
    yield _sum(findings)


def _sum(findings: Sequence[Finding]) -> str:
    count = Counter(item.level for item in findings)
    if count[Level.WRONG]:
        verb = "is" if count[Level.WRONG] == 1 else "are"
        return f"{counted(count[Level.WRONG], 'thing')} {verb} wrong"
    if count[Level.UNKNOWN]:
        return f"nothing wrong was found, and {count[Level.UNKNOWN]} could not be found out"
    if count[Level.LOOK]:
        return f"nothing is wrong, {count[Level.LOOK]} worth a look"
    return "all is well"
