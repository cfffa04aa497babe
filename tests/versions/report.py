"""
What each Kubernetes did, as data and as the tables of docs/versions.md.

`results.json` has an entry for each minor; a run replaces those that it played.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from simulator.controlplane.older import read_releases
from tests.support.site import SINCE

RESULTS: Final = Path(__file__).with_name("results.json")
TOKEN: Final = "token: "
PASSED, MISSING, SKIPPED, FAILED = "passed", "missing", "skipped", "failed"
OUTCOMES: Final = {
    PASSED: "passed",
    MISSING: "cannot be, as expected",
    SKIPPED: "about something younger",
    FAILED: "failed",
}
_XFAIL: Final = "pytest.xfail"

Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """How one test ended, and what it said of itself."""

    outcome: str
    properties: tuple[tuple[str, str], ...] = ()


def read_junit(path: Path) -> list[Case]:
    return [_case(item) for item in ET.parse(path).iter("testcase")]


def _case(item: ET.Element) -> Case:
    said = tuple((one.get("name", ""), one.get("value", "")) for one in item.iter("property"))
    if item.find("failure") is not None or item.find("error") is not None:
        return Case(FAILED, said)
    skipped = item.find("skipped")
    if skipped is None:
        return Case(PASSED, said)
    return Case(MISSING if skipped.get("type") == _XFAIL else SKIPPED, said)


def row(cases: Iterable[Case], seconds: int, today: str) -> Row:
    """Add up one run: how many tests, what they say this Kubernetes can do, and a stolen token."""
    kept = list(cases)
    abilities: dict[str, bool] = {}
    token: dict[str, bool] = {}
    for case in kept:
        for name, text in case.properties:
            if name == SINCE and case.outcome in {PASSED, MISSING}:
                abilities[text] = case.outcome == PASSED and abilities.get(text, True)
            elif name.startswith(TOKEN):
                token[name.removeprefix(TOKEN)] = text == "yes"
    counts = {outcome: sum(case.outcome == outcome for case in kept) for outcome in OUTCOMES}
    return {**counts, "seconds": seconds, "on": today, "abilities": abilities, "token": token}


def load() -> dict[str, Row]:
    if not RESULTS.exists():
        return {}
    results: dict[str, Row] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def store(minor: str, played: Row) -> None:
    results = {**load(), minor: played}
    ordered = {name: results[name] for name in sorted(results, key=_number)}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def runs() -> str:
    """Return how many tests were run on each minor."""
    results = load()
    rows = [
        [minor, *(str(results[minor][key]) if minor in results else "not run" for key in OUTCOMES)]
        for minor in dict.fromkeys((*read_releases(), *results))
    ]
    return _table(["Kubernetes", *OUTCOMES.values()], rows)


def summary(minor: str, played: Row) -> str:
    """Say in one line what came of one minor."""
    counts = ", ".join(f"{played[key]} {what}" for key, what in OUTCOMES.items())
    return f"Kubernetes {minor}: {counts}; {played['seconds']} s"


def abilities() -> str:
    """Return what each minor can do of what not all of them can."""
    return _compared("what works", "abilities", "**no**")


def token() -> str:
    """Return what the holder of one agent's token can do on each minor."""
    return _compared("the holder of a stolen agent's token can", "token", "no")


def _compared(head: str, key: str, no: str) -> str:
    """Return a column for each row of minors that are alike."""
    words = {True: "yes", False: no}
    results = load()
    names = list(dict.fromkeys(name for one in results.values() for name in one[key]))
    cells = {
        minor: tuple(words.get(one[key].get(name), "") for name in names)
        for minor, one in results.items()
    }
    groups = [list(minors) for _, minors in groupby(cells, key=lambda minor: cells[minor])]
    heads = [head, *(_span(minors) for minors in groups)]
    return _table(
        heads,
        (
            [name, *(cells[minors[0]][place] for minors in groups)]
            for place, name in enumerate(names)
        ),
    )


def _span(minors: list[str]) -> str:
    """Name minors that are alike, as a range where none between them is unknown."""
    first, last = minors[0], minors[-1]
    if len(minors) > 2 and _number(last) - _number(first) == len(minors) - 1:
        return f"{first} to {last}"
    return ", ".join(minors)


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])


if __name__ == "__main__":
    sys.stdout.write(f"{runs()}\n\n{abilities()}\n\n{token()}\n")
