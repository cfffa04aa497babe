"""`doctor`: whether everything is installed, running and seen; what is wrong has its remedy."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from gpufence.errors import Finding, Level
from kubectl_gpufence.arguments import add_output, interval
from kubectl_gpufence.verbs.doctor.checks_agents import (
    check_agents,
    check_claims,
    check_namespaces,
    check_scaling,
)
from kubectl_gpufence.verbs.doctor.checks_driver import check_driver
from kubectl_gpufence.verbs.doctor.checks_tenants import check_tenants
from kubectl_gpufence.verbs.doctor.checks_webhook import check_rights, check_server, check_webhook
from kubectl_gpufence.verbs.doctor.read import read_installation
from kubectl_gpufence.verbs.doctor.starting import starting
from kubectl_gpufence.verbs.doctor.trial_pod import check_called
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
  kubectl gpufence doctor --wait 2m           after an installation: until all has started
  kubectl gpufence doctor -o json | jq '.checks[] | select(.level == "wrong")'

exit code: 0 well, starting, or worth a look at most; 1 something is wrong, or has not started in
the time of --wait
"""

_WELL, _WRONG = 0, 1
_LOOK_SECONDS: Final = 2.0
_TONES = {
    Level.OK: Tone.GOOD,
    Level.STARTING: Tone.WARN,
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
    help_text = "look again for so long while something is starting, such as 2m"
    parser.add_argument("--wait", type=interval, default=0.0, metavar="TIME", help=help_text)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """Check everything; 1 where something is wrong, or is still starting at the end of a wait."""
    until = time.monotonic() + call.wait
    while starts(findings := examine(read_installation(reader))) and time.monotonic() < until:
        output.progress(f"waiting: {_sum(findings)}")
        time.sleep(min(_LOOK_SECONDS, call.wait))
    if call.output == "json":
        output.json({"v": 1, "checks": records(FINDING_FIELDS, findings)})
    else:
        output.lines(findings_lines(findings, output.display))
    return _WRONG if is_wrong(findings) or (call.wait and starts(findings)) else _WELL


def examine(installation: Installation) -> list[Finding]:
    """Make every check, from the ground up."""
    return [
        *check_server(installation),
        *check_rights(installation),
        *check_webhook(installation),
        *starting(check_called(installation), young=installation.young),
        *check_agents(installation),
        *check_driver(installation),
        *check_namespaces(installation),
        *check_tenants(installation),
        *check_claims(installation),
        *check_scaling(installation),
    ]


def is_wrong(findings: Iterable[Finding]) -> bool:
    return any(item.level is Level.WRONG for item in findings)


def starts(findings: Iterable[Finding]) -> bool:
    return any(item.level is Level.STARTING for item in findings)


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
    yield from wrapped(_sum(findings), "", display)


def _sum(findings: Sequence[Finding]) -> str:
    count = Counter(item.level for item in findings)
    if count[Level.WRONG]:
        verb = "is" if count[Level.WRONG] == 1 else "are"
        return f"{counted(count[Level.WRONG], 'thing')} {verb} wrong"
    if count[Level.STARTING]:
        verb = "is" if count[Level.STARTING] == 1 else "are"
        things = f"{counted(count[Level.STARTING], 'thing')} {verb} starting"
        return f"nothing is wrong, {things}; `doctor --wait 2m` looks again until that is over"
    if count[Level.UNKNOWN]:
        return f"nothing wrong was found, and {count[Level.UNKNOWN]} could not be found out"
    if count[Level.LOOK]:
        return f"nothing is wrong, {count[Level.LOOK]} worth a look"
    return "all is well"
