"""
PURE. Counting time: leaky buckets of time over a threshold, carried from one sample to the next.

A bucket fills while over and drains at half the speed while under. What a sample says holds until
the next one. A pod that hovers around its threshold is caught once it is over for more than a third
of the time; one that peaks now and then never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.model.memory import EMPTY, Bucket, Watch

if TYPE_CHECKING:
    from agent.judge.brakes import Tick
    from agent.model.policy import Policy
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
    level = _level(bucket, rules)
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


def in_start_pause(started_at: float, at: float, policy: Policy) -> bool:
    return at < started_at + policy.start_pause_seconds


def in_grace(first_seen_at: float, at: float, policy: Policy) -> bool:
    """
    Return whether `at` lies in the start-up grace of a pod first seen then.

    It ends once for the pod: what restarts in it has had its grace.
    """
    return at < first_seen_at + policy.grace_seconds


def carried(past: Watch | None, use: PodOnCard, card: CardUse, tick: Tick) -> Watch:
    """
    Return the watch of a pod on a card after this sample; `use` has its hold and its brake.

    A limit that was lowered starts from zero: nobody was over it before it was there.
    """
    limit = use.limit_bytes or 0
    if past is None or limit < past.limit_bytes:
        past = Watch(limit)
    if card.listed_at is None:
        return Watch(limit, pause(past.report), pause(past.hold), pause(past.short))
    if not tick.is_new(card):
        return Watch(limit, past.report, past.hold, past.short)
    at, policy = card.listed_at, tick.policy
    report = Pour(at, policy.hold_seconds, policy.gap_seconds)
    spared = in_grace(use.first_seen_at, past.hold.at, policy)
    hold = Pour(
        at,
        use.hold_seconds,
        policy.gap_seconds,
        frozen=spared or _is_frozen(past.hold, use, tick),
    )
    short = Pour(
        at, policy.short_hold_seconds, policy.gap_seconds, frozen=_is_frozen(past.short, use, tick)
    )
    return Watch(
        limit_bytes=limit,
        report=pour(past.report, report, over=use.report_over),
        hold=pour(past.hold, hold, over=use.evict_over),
        short=pour(past.short, short, over=use.short_over),
    )


def is_quiet(watch: Watch) -> bool:
    """
    Return whether nothing is being counted.
    """
    return watch.report is EMPTY and watch.hold is EMPTY and watch.short is EMPTY


def _is_frozen(bucket: Bucket, use: PodOnCard, tick: Tick) -> bool:
    """
    Return whether a brake takes the time out, by where the time to be added begins.
    """
    return use.brake is not None or in_start_pause(tick.memory.started_at, bucket.at, tick.policy)


def _level(bucket: Bucket, rules: Pour) -> float:
    seconds = rules.at - bucket.at
    level = min(bucket.level_seconds, rules.cap_seconds)
    if rules.frozen or bucket.over is None or not 0.0 < seconds <= rules.gap_seconds:
        return level
    if bucket.over:
        return min(level + seconds, rules.cap_seconds)
    return max(level - seconds * _DRAIN, 0.0)
