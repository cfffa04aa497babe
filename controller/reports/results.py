"""
PURE. What is reported of one pod: whether its memory is declared, its frameworks are capped, it is
over its limit, and its GPU is idle.

What nobody can tell is skipped, with the reason: never passed. No message has a figure that moves
from look to look, so that a report changes when something has.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.dialects import Declared, read_declaration
from gpufence.mode import Mode
from gpufence.text import duration, limit_mebibytes, printable

if TYPE_CHECKING:
    from gpufence.dialects import Units
    from gpufence.pods import Pod
    from gpufence.snapshot import PodRow, UseRow

MOST_MESSAGE: Final = 300


class ResultWord(StrEnum):
    """What OpenReports calls it, the worst first."""

    FAIL = "fail"
    ERROR = "error"
    WARN = "warn"
    SKIP = "skip"
    PASS = "pass"  # noqa: S105 - a word of OpenReports


class ReportRule(StrEnum):
    """What is looked at."""

    DECLARED = "declared"
    CAPPED = "capped"
    OVER = "over"
    IDLE = "idle"


class PodResult(NamedTuple):
    """What became of one rule."""

    rule: ReportRule
    word: ResultWord
    message: str


class ReportTerms(NamedTuple):
    """
    What a pod is held to: the mode of its namespace, after how long it counts as idle, and the
    units of its node.
    """

    mode: Mode
    idle_after_seconds: float
    units: Units


_WITHIN: Final = frozenset({"idle", "within"})
_STAYS: Final = "not enforced"
_OVER: Final = frozenset(
    {
        *("tolerated", "exempt", "only when short", "uninjected", "other card", "grace", "holding"),
        *("would evict", "braked", "backing off", "queued", "stuck", "evict"),
    }
)
_UNSURE: Final = {
    "": "its agent does not judge it",
    "unknown": "its use cannot be read",
    "undeclared": "nothing says how much it may hold",
    "unconfirmed": "it is over by processes that only one list has shown: the next one decides",
    "not renewed": "it was over in an earlier list: the next one decides",
    "mps": "clients of the node's MPS server cannot be told apart",
    "terminating": "it is on its way out",
}
OUTCOMES: Final = frozenset({*_WITHIN, *_OVER, *_UNSURE, _STAYS})
"""Every verdict of an agent that is known here."""
_TOLD: Final = {
    names.INJECTED_YES: (ResultWord.PASS, "its frameworks were told what they may hold"),
    names.INJECTED_OPTED_OUT: (ResultWord.WARN, "its frameworks were told nothing: it opted out"),
    "": (ResultWord.WARN, "its frameworks were told nothing: the webhook never saw it"),
}


def results_of(pod: Pod, row: PodRow | str, terms: ReportTerms) -> tuple[PodResult, ...]:
    """
    Return what is reported of a pod; `row` is what its agent says of it, or why nobody can tell.
    """
    found = [(ReportRule.CAPPED, *_capped(pod, terms))]
    if isinstance(row, str):
        rules = ReportRule.DECLARED, ReportRule.OVER, ReportRule.IDLE
        found += [(rule, ResultWord.SKIP, row) for rule in rules]
    else:
        found += [
            (ReportRule.DECLARED, *_declared(row)),
            (ReportRule.OVER, *_over(row)),
            (ReportRule.IDLE, *_idle(row, terms.idle_after_seconds)),
        ]
    return tuple(
        PodResult(rule, word, printable(message, MOST_MESSAGE)) for rule, word, message in found
    )


def _declared(row: PodRow) -> tuple[ResultWord, str]:
    if row.undeclared:
        return ResultWord.WARN, f"nothing says how much it may hold: {row.undeclared}"
    return ResultWord.PASS, "its limit is known"


def _capped(pod: Pod, terms: ReportTerms) -> tuple[ResultWord, str]:
    injected = pod.annotations.get(names.INJECTED, "")
    if injected in _TOLD:
        word, message = _TOLD[injected]
        warned = pod.annotations.get(names.WARNINGS, "")
        if word is ResultWord.PASS and warned:
            return ResultWord.WARN, f"{message}, and its creator was warned: {warned}"
        return word, message
    declared = read_declaration(pod, terms.units)
    if isinstance(declared, Declared) and declared.library_caps:
        return ResultWord.PASS, "the library of its sharing system caps it"
    if terms.mode is Mode.OBSERVE:
        return ResultWord.SKIP, "mode observe tells frameworks nothing"
    return ResultWord.WARN, (
        "its frameworks were told nothing: it was made in mode observe, or has no limit that is "
        "enforced"
    )


def _over(row: PodRow) -> tuple[ResultWord, str]:
    """Return the worst of all cards; who is seen to hold nothing is within his limit."""
    found = list(map(_over_on, row.uses))
    for word in (ResultWord.FAIL, ResultWord.WARN, ResultWord.SKIP):
        for each in found:
            if each[0] is word:
                return each
    if row.undeclared and not row.uses:
        return ResultWord.SKIP, _UNSURE["undeclared"]
    return ResultWord.PASS, "it holds no more than its limit"


def _over_on(use: UseRow) -> tuple[ResultWord, str]:
    if use.used_bytes is None:
        return ResultWord.SKIP, _UNSURE["unknown"]
    over = f"it holds more than its limit of {limit_mebibytes(use.limit_bytes)} on card {use.card}"
    if use.outcome in _OVER:
        return ResultWord.FAIL, over
    if use.outcome == _STAYS:
        return ResultWord.WARN, f"{over}, which is implied by the card's settings and not enforced"
    if use.outcome in _WITHIN:
        return ResultWord.PASS, ""
    unknown = f"its agent says {use.outcome}, which this controller does not know"
    return ResultWord.SKIP, _UNSURE.get(use.outcome, unknown)


def _idle(row: PodRow, after_seconds: float) -> tuple[ResultWord, str]:
    activity = row.activity
    if activity is None:
        return ResultWord.SKIP, "its agent does not tell what it does"
    if activity.idle_seconds is None:
        return ResultWord.SKIP, f"nobody can tell: {activity.why or 'its agent does not say why'}"
    if activity.state == "idle" and activity.idle_seconds >= after_seconds:
        return ResultWord.WARN, f"it has not used its GPU for {duration(after_seconds)} and more"
    return ResultWord.PASS, f"it has not been idle for {duration(after_seconds)}"
