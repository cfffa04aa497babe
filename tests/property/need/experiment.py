"""
Every rule on every workload on every day: how often its limit is below the need, and how far above
it is where it is not.

`python -m tests.property.need.experiment` prints the tables of docs/need.md, then each kind's.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from statistics import median
from typing import NamedTuple

from gpufence.need import Confidence, OwnerNeed, summarise
from gpufence.target import MostHeld, limit_for
from tests.property.need.rules import RULES, MeasuredDay, Rule, key_of, krr, measure, required_limit
from tests.property.need.workloads import DAYS, KINDS, Kind, Workload, workloads

OURS = "gpufence"
BELOW = "below the need"
OVER = "over, median"
PLAIN = "maximum and 15 % as the limit itself, without the share rule"


class Proposal(NamedTuple):
    """
    What a rule says of a workload on a day, None for nothing, and what would be right. `sure` says
    whether gpufence is on that day, whoever's proposal it is.
    """

    rule: str
    workload: str
    limit_bytes: int | None
    required_bytes: int
    confidence: Confidence
    sure: bool

    @property
    def below(self) -> bool:
        return self.limit_bytes is not None and self.limit_bytes < self.required_bytes

    @property
    def over(self) -> float:
        return (self.limit_bytes or 0) / self.required_bytes - 1

    @property
    def kind(self) -> str:
        return self.workload.rpartition("-")[0]


@cache
def proposals() -> tuple[Proposal, ...]:
    """Return what every rule says of every workload on each of its days."""
    return tuple(proposal for workload in workloads() for proposal in _of(workload))


def _of(workload: Workload) -> Iterator[Proposal]:
    days = measure(workload)
    for day in range(DAYS):
        seen = days[: day + 1]
        owner = OwnerNeed(key_of(workload), tuple(item.row for item in seen))
        summary = summarise(owner, workload.card)
        assert summary is not None
        required = required_limit(workload, workload.need_on(day))
        sure = summary.target_bytes is not None and summary.confidence is Confidence.HIGH
        answers = {OURS: summary.target_bytes} | {
            name: _limit(rule, seen, workload) for name, rule in RULES.items()
        }
        answers[PLAIN] = krr(seen)
        for name, answer in answers.items():
            yield Proposal(name, workload.name, answer, required, summary.confidence, sure)


def _limit(rule: Rule, seen: Sequence[MeasuredDay], workload: Workload) -> int | None:
    """Turn what a rule leaves to a pod into a limit, as ours is: no rule of theirs knows how."""
    amount = rule(seen)
    if amount is None:
        return None
    row = max((item.row for item in seen), key=lambda row: row.peak_bytes)
    largest = amount * row.process_bytes // row.peak_bytes
    most = MostHeld(amount, row.processes, largest, row.shares)
    return min(limit_for(most, workload.card.reserve_bytes, 0), workload.card.memory_bytes)


def table() -> str:
    """Return the table of the docs: each rule on all workloads and days."""
    made = proposals()
    titles = ("rule", "proposals", BELOW, "where gpufence is sure", BELOW, OVER, "nine of ten")
    return _table(titles, (_line(rule, made) for rule in (OURS, *RULES, PLAIN)))


def kinds() -> str:
    """Return how gpufence fares with each kind of workload."""
    made = [item for item in proposals() if item.rule == OURS]
    titles = ("workloads", "what they do", "proposals", BELOW, "sure", BELOW, OVER)
    return _table(titles, (_kind(kind, made) for kind in KINDS))


def _kind(kind: Kind, made: Sequence[Proposal]) -> tuple[str, ...]:
    of_kind = [item for item in made if item.kind == kind.__name__]
    answered = [item for item in of_kind if item.limit_bytes is not None]
    sure = [item for item in of_kind if item.sure]
    below, surely = (sum(item.below for item in items) for items in (answered, sure))
    does = " ".join((kind.__doc__ or "").split()).rstrip(".")
    name = kind.__name__.replace("_", " ")
    return (name, does, str(len(answered)), str(below), str(len(sure)), str(surely), _median(sure))


def _line(rule: str, made: Sequence[Proposal]) -> tuple[str, ...]:
    answered = [item for item in made if item.rule == rule and item.limit_bytes is not None]
    sure = [item for item in answered if item.sure]
    below, surely = (
        _share(sum(item.below for item in items), len(items)) for items in (answered, sure)
    )
    return (rule, str(len(answered)), below, str(len(sure)), surely, _median(sure), _ninth(sure))


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(some: int, of: int) -> str:
    return f"{some} ({some * 100 / of:.1f} %)" if some else "0"


def _median(items: Sequence[Proposal]) -> str:
    return f"{median(item.over for item in items) * 100:.0f} %" if items else "-"


def _ninth(items: Sequence[Proposal]) -> str:
    return f"{sorted(item.over for item in items)[len(items) * 9 // 10] * 100:.0f} %"


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n\n{kinds()}\n")
