"""
PURE. What `make nightly` runs, what it still has to run, and the table of how each of it ended.

A verb's last run is kept with the commit that it ran on: a run that was stopped goes on where it
stood, and another commit begins anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
ROOT_USER, RABBITMQ, GPUSHARE = "root", "rabbitmq-server", "gpushare's program"
WANTING: Final = {
    ROOT_USER: "takes root",
    RABBITMQ: "takes Debian's rabbitmq-server",
    GPUSHARE: "GPUSHARE_INSPECT names no build of gpushare's program",
}
_COUNTED: Final = re.compile(r"\b\d+ (?:passed|failed|errors?|skipped)\b")
_MINUTE: Final = 60
_LONG_SECONDS: Final = 2 * _MINUTE


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the Makefile, the marker of its tests if it has one, and what it takes."""

    name: str
    about: str
    marker: str = ""
    needs: tuple[str, ...] = ()


VERBS: Final = (
    Verb("slow", "tests that take long", "nightly"),
    Verb("bench", "speed and memory, as ratios within one run", "bench"),
    Verb("gpushare", "gpushare's own program beside ours", "gpushare", (GPUSHARE,)),
    Verb("coverage", "how much of all our code the tests of `make test` reach"),
    Verb("keda", "real KEDA and RabbitMQ", "keda", (RABBITMQ,)),
    Verb("scale", "5,000 GPU nodes and 50,000 pods"),
    Verb("release-check", "a release from two clones", "release"),
    Verb("e2e", "a real one-node cluster", "e2e", (ROOT_USER,)),
    Verb("versions", "each Kubernetes from 1.30"),
    Verb("soak", "hours of load, searches with many examples", "soak"),
    Verb("frameworks", "real frameworks on simulated cards", "frameworks"),
)
"""All that `make test` leaves out, what is short first."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a verb ended, on which commit and day, and in how many seconds."""

    commit: str
    day: str
    outcome: str
    seconds: int = 0
    note: str = ""


Runs = dict[str, Run]


def read_runs(kept: Mapping[str, Mapping[str, Any]]) -> Runs:
    """Read what was kept; a verb that is no more is forgotten."""
    known = {verb.name for verb in VERBS}
    return {name: Run(**fields) for name, fields in kept.items() if name in known}


def due(runs: Mapping[str, Run], commit: str, only: Collection[str] = ()) -> list[Verb]:
    """Return what has not ended on this commit yet, or just what is named."""
    if only:
        return [verb for verb in VERBS if verb.name in only]
    return [verb for verb in VERBS if not _ended(runs.get(verb.name), commit)]


def why_not(verb: Verb, present: Collection[str]) -> str:
    """Say what a verb lacks on a machine that has these things; nothing, if it can run."""
    return "; ".join(WANTING[need] for need in verb.needs if need not in present)


def ended(status: int, lines: Iterable[str]) -> tuple[str, str]:
    """Return whether a verb passed, and in a few words what it said of its tests."""
    counts, untried = "", ""
    for line in lines:
        found = _COUNTED.findall(line)
        if found and " in " in line:
            counts = ", ".join(found)
        if line.startswith("not tried: "):
            untried = line.strip()
    failure = "" if status == 0 else f"ended with status {status}"
    note = "; ".join(text for text in (counts or failure, untried) if text)
    return (PASSED if status == 0 else FAILED), note


def failed(runs: Mapping[str, Run], commit: str) -> list[str]:
    """Name the verbs that failed on this commit."""
    return [
        verb.name
        for verb in VERBS
        if (run := runs.get(verb.name)) and (run.commit, run.outcome) == (commit, FAILED)
    ]


def as_table(runs: Mapping[str, Run]) -> str:
    """Write how each verb ended last."""
    heads = ("verb", "what it is", "ended", "took", "on", "commit", "")
    rows = [_row(verb, runs.get(verb.name)) for verb in VERBS]
    ruled = "|---|---|---|---:|---|---|---|"
    return "\n".join([_line(heads), ruled, *map(_line, rows)])


def took(seconds: int) -> str:
    """Write a time as people say it."""
    return f"{seconds} s" if seconds < _LONG_SECONDS else f"{round(seconds / _MINUTE)} min"


def _row(verb: Verb, run: Run | None) -> tuple[str, ...]:
    name = f"`make {verb.name}`"
    if run is None:
        return (name, verb.about, NOT_RUN, "", "", "", "")
    outcome = f"**{FAILED}**" if run.outcome == FAILED else run.outcome
    time = "" if run.outcome == NOT_RUN else took(run.seconds)
    return (name, verb.about, outcome, time, run.day, f"`{run.commit}`", run.note)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ended(run: Run | None, commit: str) -> bool:
    return run is not None and run.commit == commit and run.outcome != NOT_RUN
