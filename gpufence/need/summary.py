"""What each model needs: the peak, a target, how far to trust it, and why, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need.levels import MOST_OF_THE_TIME_PERCENT, enough_mostly, seconds_of
from gpufence.need.measured import (
    LEAST_SECONDS,
    MAY_BE,
    SURE_DAYS,
    Confidence,
    cap_reason,
    cards_of,
    confidence_of,
    is_certain,
    measured_of,
    merged,
)
from gpufence.target import (
    MARGIN_PERCENT,
    RAISE_PERCENT,
    TargetTerms,
    request_for,
    target_for,
)
from gpufence.text import limit_mebibytes, mebibytes
from gpufence.times import read_moment, write_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpufence.need.measured import Measured
    from gpufence.need.rows import CardNeed, NeedKey, NodeNeed, OwnerNeed
    from gpufence.target import LimitTarget


WORTH_PERCENT: Final = 25
"""What is held mostly is so far below the peak, or a limit that may be recalled is not worth it."""

_DAY_SECONDS: Final = 86_400
_ALL: Final = 100


class NeedReasons(NamedTuple):
    """Why each figure is what it is; `request` is empty where none is proposed."""

    peak: str
    target: str
    confidence: str
    request: str = ""

    @property
    def said(self) -> dict[str, str]:
        return {figure: why for figure, why in self._asdict().items() if why}


class NeedSummary(NamedTuple):
    """
    What one container of an owner needs on one model of card.

    `target_bytes` is None where nothing can be proposed, `request_bytes` where the target itself is
    to be requested; else that is enough nearly always, and the target a limit above it.
    `limit_bytes` and `told_bytes` are the largest of the newest day. `capped`: it took all that it
    could, so that its need cannot be seen. `out_of_memory` counts the days on which CUDA was.
    `last_day` is the last on which it held anything, empty where nobody knows.
    """

    key: NeedKey
    peak_bytes: int
    target_bytes: int | None
    confidence: Confidence
    days: int
    pods: int
    held_seconds: float
    limit_bytes: int | None
    told_bytes: int | None
    capped: bool
    out_of_memory: int
    evictions: int
    reasons: NeedReasons
    last_day: str = ""
    request_bytes: int | None = None

    @property
    def perhaps(self) -> bool:
        """Return whether that it is capped depends on its CUDA context."""
        return MAY_BE in self.reasons.target


class ProposalTerms(NamedTuple):
    """What an owner or its namespace says about targets."""

    margin_percent: int = MARGIN_PERCENT
    most_bytes: int | None = None


NO_TERMS: Final = ProposalTerms()


def summaries(
    needs: Iterable[NodeNeed], terms_of: Callable[[NeedKey], ProposalTerms] = lambda _: NO_TERMS
) -> list[NeedSummary]:
    """Say of every model that any node remembers what it needs, in the order of their keys."""
    every = list(needs)
    cards = cards_of(every)
    summarised = (
        summarise(owner, cards.get(owner.key.card), terms_of(owner.key)) for owner in merged(every)
    )
    return [summary for summary in summarised if summary is not None]


def summarise(
    owner: OwnerNeed, card: CardNeed | None = None, terms: ProposalTerms = NO_TERMS
) -> NeedSummary | None:
    """Say what a key of `merged` needs; None where it held nothing."""
    measured = measured_of(owner, card)
    if measured is None:
        return None
    confidence, why = confidence_of(measured)
    at_cap = cap_reason(measured)
    perhaps = bool(at_cap) and not is_certain(measured)
    target = None
    if confidence is not Confidence.LOW and (perhaps or not at_cap):
        target = target_for(measured.held, measured.too_small_bytes, _terms(measured, terms))
    if perhaps and target is not None:
        # It is for a person to try: taken up by itself, each target could make the next one.
        at_cap += f"; or request {limit_mebibytes(target.limit_bytes)} and look again"
        target = None
    newest = measured.newest
    request, why_request = _request(measured, confidence, target, terms)
    return NeedSummary(
        key=owner.key,
        peak_bytes=measured.peak_bytes,
        target_bytes=None if target is None else target.limit_bytes,
        confidence=confidence,
        days=len(measured.days),
        pods=measured.pods,
        held_seconds=measured.held_seconds,
        limit_bytes=max((row.limit_bytes for row in newest if row.limit_bytes), default=None),
        told_bytes=max((row.told_bytes for row in newest if row.told_bytes), default=None),
        capped=bool(at_cap),
        out_of_memory=len({row.day for row in measured.rows if row.out_of_memory_limit_bytes}),
        evictions=sum(row.evictions for row in measured.rows),
        reasons=NeedReasons(_why_peak(measured), at_cap or _why(target, terms), why, why_request),
        last_day=measured.days[-1],
        request_bytes=request,
    )


def together(containers: Sequence[NeedSummary]) -> list[list[NeedSummary]]:
    """
    Return which containers of an owner run at the same time on a model of card: those of the last
    two days. One that has not been there since was called otherwise before the last roll-out, or
    begins a pod before the others: its need never comes on top of theirs.
    """
    since = _day_before(max((item.last_day for item in containers), default=""))
    present = [item for item in containers if item.last_day >= since]
    return [present, *([item] for item in containers if item.last_day < since)]


def _day_before(day: str) -> str:
    if not day:
        return ""
    midnight = read_moment(f"{day}T00:00:00Z", "day")
    return write_moment(midnight - _DAY_SECONDS)[: len(day)]


def _terms(measured: Measured, terms: ProposalTerms) -> TargetTerms:
    card = measured.card
    return TargetTerms(
        card.reserve_bytes, terms.margin_percent, card.memory_bytes or None, terms.most_bytes
    )


def _request(
    measured: Measured, confidence: Confidence, target: LimitTarget | None, terms: ProposalTerms
) -> tuple[int | None, str]:
    """
    Return what would be enough to request, and why, where that is far below the target, sure, and
    for a week known from how long what was held.
    """
    told = [row for row in measured.rows if row.levels]
    days = len({row.day for row in told})
    levels = [row.levels for row in told]
    short = days < SURE_DAYS or sum(map(seconds_of, levels)) < LEAST_SECONDS
    if target is None or confidence is not Confidence.HIGH or short:
        return None, ""
    mostly = enough_mostly(levels)
    request = request_for(mostly, terms.margin_percent)
    if (
        mostly * _ALL > measured.peak_bytes * (_ALL - WORTH_PERCENT)
        or request >= target.limit_bytes
    ):
        return None, ""
    time = f"{MOST_OF_THE_TIME_PERCENT} % of the time of {days} days"
    return request, (
        f"no more than {mebibytes(mostly)} was held for {time}, and {terms.margin_percent} %; the "
        f"target is for the rest, as its limit"
    )


def _why_peak(measured: Measured) -> str:
    """Return when the most was held, and who says so."""
    row = next(row for row in measured.rows if row.peak_bytes == measured.peak_bytes)
    by = "the driver's own high-water mark" if row.driver_peak else "as the agent measured"
    several = f" in {row.processes} processes" if row.processes > 1 else ""
    return f"{mebibytes(row.peak_bytes)} held by one pod on one card{several} on {row.day}, {by}"


def _why(target: LimitTarget | None, terms: ProposalTerms) -> str:
    """Return what decided a target: the measured, a limit that was too small, or a bound."""
    if target is None:
        return "none: too little was measured"
    if target.raised_from is not None:
        small = limit_mebibytes(target.raised_from)
        why = f"{RAISE_PERCENT} % above {small}, at which it was evicted or out of memory"
    else:
        why = f"the peak and {terms.margin_percent} %, as a limit by the share rule"
    if target.bound_bytes is None:
        return why
    by = "the ceiling" if target.bound_bytes == terms.most_bytes else "its card"
    return f"{why}; {by} bounds it at {limit_mebibytes(target.bound_bytes)}"
