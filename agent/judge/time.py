"""
PURE. Counting time: leaky buckets of time over a threshold, carried from one sample to the next.

A bucket fills while over and drains at half the speed while under. What a sample says holds until
the next one. A pod that hovers around its threshold is caught once it is over for more than a third
of the time; one that peaks now and then never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.model.memory import EMPTY, NO_WATCH, Bucket, Watch

if TYPE_CHECKING:
    from agent.judge.brakes import Tick
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, PodOnCard

_DRAIN = 0.5
_JITTER_SECONDS = 0.05


class Pour(NamedTuple):
    """
    The rules for one bucket at one sample: `at` its time, `cap_seconds` the most it holds.

    `frozen`: the time since the last sample does not count. Neither does a gap nobody looked into.
    """

    at: float
    cap_seconds: float
    gap_seconds: float
    frozen: bool = False


def pour(bucket: Bucket, rules: Pour, *, over: bool | None) -> Bucket:
    """
    Carry a bucket on to a sample that says `over`, None where it says nothing certain.
    """
    seconds = rules.at - bucket.at
    level = min(bucket.level_seconds, rules.cap_seconds)
    if not rules.frozen and bucket.over is not None and 0.0 < seconds <= rules.gap_seconds:
        if bucket.over:
            level = min(level + seconds, rules.cap_seconds)
        else:
            level = max(level - seconds * _DRAIN, 0.0)
    if not level and over is False:
        return EMPTY
    since = rules.at if over and bucket.since is None else bucket.since
    return Bucket(level, over, rules.at, since)


def pause(bucket: Bucket) -> Bucket:
    """
    Carry a bucket past a sample that is missing: what was before proves nothing any more.
    """
    if bucket.over is None:
        return bucket
    return Bucket(bucket.level_seconds, None, bucket.at, bucket.since)


def is_due(bucket: Bucket, hold_seconds: float) -> bool:
    """
    Return whether a bucket is full; it acts only while over.

    No sample comes exactly an interval after the last one: without some patience with that, every
    other hold would last an interval longer.
    """
    return bucket.over is True and bucket.level_seconds >= hold_seconds - _JITTER_SECONDS


def in_start_pause(started_at: float, at: float, policy: EvictionPolicy) -> bool:
    return at < started_at + policy.start_pause_seconds


def carried(past: Watch | None, use: PodOnCard, card: CardUse, tick: Tick) -> Watch:
    """
    Return the watch of a pod on a card after this sample, NO_WATCH where nothing is counted any
    more; `use` has its grace, its hold and its brake.

    A limit that was lowered starts from zero: nobody was over it before it was there.
    """
    limit = use.limit_bytes or 0
    if past is None or limit < past.limit_bytes:
        past = Watch(limit)
    report, hold, short = past.report, past.hold, past.short
    at, policy, started_at = card.listed_at, tick.policy, tick.memory.started_at
    if at is None:
        report, hold, short = pause(report), pause(hold), pause(short)
    elif card.card.uuid in tick.renewed:
        # A brake, the start and the grace take time out; they go by where it begins.
        braked = use.brake is not None
        short_frozen = braked or in_start_pause(started_at, short.at, policy)
        hold_frozen = braked or in_start_pause(started_at, hold.at, policy)
        hold_frozen = hold_frozen or hold.at < use.grace_ends_at
        rules = Pour(at, policy.hold_seconds, policy.gap_seconds)
        report = pour(report, rules, over=use.report_over)
        rules = Pour(at, use.hold_seconds, policy.gap_seconds, hold_frozen)
        hold = pour(hold, rules, over=use.evict_over)
        rules = Pour(at, policy.short_hold_seconds, policy.gap_seconds, short_frozen)
        short = pour(short, rules, over=use.short_over)
    if report is EMPTY and hold is EMPTY and short is EMPTY:
        return NO_WATCH
    return Watch(limit, report, hold, short)
