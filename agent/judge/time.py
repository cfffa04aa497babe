"""
PURE. Counting time: leaky buckets of time over a threshold, carried from one sample to the next.

A bucket fills while over, the faster the more a pod takes, and drains at half the usual speed while
under. What a sample says holds until the next one. A pod that hovers around its threshold is caught
once it is over for more than a third of the time; one that peaks now and then never is.
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
    The rules for one bucket at one sample: `at` its time, `cap_seconds` what fills it, `speed` how
    fast it fills until the next one.

    `frozen`: the time since the last sample does not count. Neither does a gap nobody looked into.
    """

    at: float
    cap_seconds: float
    gap_seconds: float
    frozen: bool = False
    speed: float = 1.0
    drain: float = _DRAIN


def pour(bucket: Bucket, rules: Pour, *, over: bool | None) -> Bucket:
    """
    Carry a bucket on to a sample that says `over`, None where it says nothing certain.

    The last drop may spill over the cap and has to drain like the rest: otherwise who is always
    under when it is full would be over for half of the time.
    """
    seconds = rules.at - bucket.at
    level = min(bucket.level_seconds, rules.cap_seconds + rules.gap_seconds * bucket.speed)
    if not rules.frozen and bucket.over is not None and 0.0 < seconds <= rules.gap_seconds:
        if not bucket.over:
            level = max(level - seconds * rules.drain, 0.0)
        elif level < rules.cap_seconds:
            level += seconds * bucket.speed
    if not level and over is False:
        return EMPTY
    since = rules.at if over and bucket.since is None else bucket.since
    return Bucket(level, over, rules.at, since, rules.speed)


def pause(bucket: Bucket) -> Bucket:
    """Carry a bucket past a sample that is missing: what was before proves nothing any more."""
    if bucket.over is None:
        return bucket
    return Bucket(bucket.level_seconds, None, bucket.at, bucket.since, bucket.speed)


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

    A limit that was lowered starts from zero: nobody was over it before it was there. What is held
    at others' cost counts in the grace, too, and whatever stops the evictions of those who hurt
    nobody.
    """
    limit = use.limit_bytes or 0
    if past is None or limit < past.limit_bytes:
        past = Watch(limit)
    report, hold, short, taking = past.report, past.hold, past.short, past.taking
    at, policy, started_at = card.listed_at, tick.policy, tick.memory.started_at
    if at is None:
        report, hold, short, taking = pause(report), pause(hold), pause(short), pause(taking)
    elif card.card.uuid in tick.renewed:
        # Brakes, the start and the grace take time out; they go by where it begins.
        gap, speed = policy.gap_seconds, use.speed
        stopped = tick.node_brake is not None
        began = max(report.at, hold.at, short.at, taking.at)
        frozen = stopped or in_start_pause(started_at, began, policy)
        mild = frozen or use.brake is not None or began < use.grace_ends_at
        report = pour(report, Pour(at, policy.hold_seconds, gap), over=use.report_over)
        hold = pour(hold, Pour(at, use.hold_seconds, gap, mild, speed), over=use.evict_over)
        rules = Pour(at, policy.short_hold_seconds, gap, frozen)
        short = pour(short, rules, over=use.short_over)
        taking = pour(taking, Pour(at, policy.hold_seconds, gap, frozen, speed), over=use.taking)
    if report is EMPTY and hold is EMPTY and short is EMPTY and taking is EMPTY:
        return NO_WATCH
    return Watch(limit, report, hold, short, taking)
