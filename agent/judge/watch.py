"""
PURE. Counting time: the buckets of one pod on one card, carried from one sample to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.judge.brakes import in_start_pause
from agent.judge.bucket import Pour, pause, pour
from agent.judge.grace import in_grace
from agent.model.memory import EMPTY, Watch

if TYPE_CHECKING:
    from agent.judge.standing import Standing
    from agent.judge.tick import Tick
    from agent.model.memory import Bucket


class Terms(NamedTuple):
    """
    What is a pod's own in counting time: its first sample, its hold, and whether a brake is on.
    """

    first_seen_at: float
    hold_seconds: float
    braked: bool


def carried(past: Watch | None, standing: Standing, tick: Tick, terms: Terms) -> Watch:
    """
    Return the watch after this sample.

    A limit that was lowered starts from zero: nobody was over it before it was there.
    """
    limit = standing.limit.limit_bytes
    if past is None or limit < past.limit_bytes:
        past = Watch(limit)
    if standing.card.listed_at is None:
        return Watch(limit, pause(past.report), pause(past.hold), pause(past.short))
    if not tick.is_new(standing.card):
        return Watch(limit, past.report, past.hold, past.short)
    return _poured(past, standing, tick, terms)


def is_quiet(watch: Watch) -> bool:
    """
    Tell whether nothing is being counted.
    """
    return watch.report is EMPTY and watch.hold is EMPTY and watch.short is EMPTY


def _poured(past: Watch, standing: Standing, tick: Tick, terms: Terms) -> Watch:
    at = standing.card.listed_at or 0.0
    policy = tick.policy

    def rules(bucket: Bucket, cap_seconds: float, *, grace: bool = False) -> Pour:
        """
        Freeze what a brake or the grace takes out, by where the time to be added begins.
        """
        early = in_start_pause(tick.memory.started_at, bucket.at, policy)
        spared = grace and in_grace(terms.first_seen_at, bucket.at, policy)
        return Pour(at, cap_seconds, policy.gap_seconds, frozen=terms.braked or early or spared)

    hold = rules(past.hold, terms.hold_seconds, grace=True)
    short = rules(past.short, policy.short_hold_seconds)
    return Watch(
        limit_bytes=standing.limit.limit_bytes,
        report=pour(
            past.report,
            Pour(at, policy.hold_seconds, policy.gap_seconds),
            over=standing.report_over,
        ),
        hold=pour(past.hold, hold, over=standing.evict_over),
        short=pour(past.short, short, over=standing.short_over),
    )
