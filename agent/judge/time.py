"""
PURE. Counting time: leaky buckets of time over a threshold, carried from one sample to the next.

A bucket fills while over, the faster the more a pod takes, and drains at half the usual speed while
under. What a sample says holds until the next one. A pod that hovers around its threshold is caught
once it is over for more than a third of the time; one that peaks now and then never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.memory import EMPTY, NO_WATCH, Bucket, Looks, Watch

if TYPE_CHECKING:
    from agent.judge.brakes import Tick
    from agent.model.policy import EvictionPolicy
    from agent.model.use import CardUse, PodOnCard

_DRAIN = 0.5
_ROUNDING_SECONDS: Final = 1e-6
LIST_GAP_SECONDS: Final = 30.0
"""How far apart two lists of a card may be while looks follow each other: one is kept so long."""

ASKED_SECONDS: Final = 60.0
"""A borrower that takes again within so long is asked for the same: its time goes on."""


class BucketRules(NamedTuple):
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


def pour(bucket: Bucket, rules: BucketRules, *, over: bool | None) -> Bucket:
    """
    Carry a bucket on to a sample that says `over`, None where it says nothing certain.

    The last drop spills over the cap and has to drain like the rest: otherwise a pod that is always
    under when its bucket is full would be over for half of the time. It does so however full the
    bucket was before: a pod that was over for longer never has the emptier one.
    """
    seconds = rules.at - bucket.at
    level = min(bucket.level_seconds, rules.cap_seconds + rules.gap_seconds * bucket.speed)
    if not rules.frozen and bucket.over is not None and 0.0 < seconds <= rules.gap_seconds:
        if not bucket.over:
            level = max(level - seconds * rules.drain, 0.0)
        else:
            drop = seconds * bucket.speed
            level = max(level, min(level, rules.cap_seconds) + drop)
    if not level and over is False:
        return EMPTY
    since = rules.at if over and bucket.since is None else bucket.since
    return Bucket(level, over, rules.at, since, rules.speed)


def pause(bucket: Bucket) -> Bucket:
    """Carry a bucket past a sample that is missing: what was before proves nothing any more."""
    if bucket.over is None:
        return bucket
    return Bucket(bucket.level_seconds, None, bucket.at, bucket.since, bucket.speed)


def asked_time(past: Bucket, rules: BucketRules, *, over: bool | None) -> Bucket:
    """
    Carry for how long a borrower has been asked: while nothing is missed that stands still, for as
    long as it is one and the same demand.
    """
    if over is not False or past.over:
        return pour(past, rules._replace(drain=0.0), over=over)
    return past if past is not EMPTY and rules.at - past.at < ASKED_SECONDS else EMPTY


def is_due(bucket: Bucket, hold_seconds: float) -> bool:
    """Return whether a bucket is full; it acts only while over."""
    return bucket.over is True and bucket.level_seconds >= hold_seconds - _ROUNDING_SECONDS


def looks_of(past: Looks, began_at: float, now: float, policy: EvictionPolicy) -> Looks:
    """
    Carry the looks on to one that began at a time and has just ended.

    How far apart they may be is a property of the looks: lists of many cards, made one after the
    other by a slow driver, take longer than three intervals and are no reason to look away.
    """
    seconds = max(now - began_at, 0.0)
    gap = policy.gap_after(max(seconds, past.seconds))
    whole = past.began_at is not None and began_at - past.began_at <= gap
    return Looks(began_at, seconds, past.unbroken_since if whole else began_at, gap)


def carried(past: Watch, use: PodOnCard, card: CardUse, tick: Tick) -> Watch:
    """
    Return the watch of a pod on a card after this sample, NO_WATCH where nothing is counted any
    more; `use` has its grace, its hold and its brake.

    A bucket holds time over the limit that applied at that time. A limit that moves takes nothing
    of it away: a pod over the larger limit was over the smaller one, too; one that was within the
    larger has no time yet. While the limit is unknown, no time is added. What is held at others'
    cost counts in the grace, too, and whatever stops the evictions of pods that hurt no other.
    """
    report, hold, short, taking = past.report, past.hold, past.short, past.taking
    recall = past.recall
    at, policy = card.listed_at, tick.policy
    if at is None:
        report, hold, short, taking = pause(report), pause(hold), pause(short), pause(taking)
        recall = pause(recall)
    elif card.card.uuid in tick.renewed:
        # Brakes, the start and the grace take time out; they go by where it begins.
        began = max(report.at, hold.at, short.at, taking.at, recall.at)
        gap, speed = tick.list_gaps.get(card.card.uuid, tick.looks.gap_seconds), use.speed
        stopped = tick.node_brake is not None
        frozen = stopped or began < tick.start_ends_at
        mild = frozen or use.brake is not None or began < use.grace_ends_at
        report = pour(report, BucketRules(at, policy.hold_seconds, gap), over=use.report_over)
        hold = pour(hold, BucketRules(at, use.hold_seconds, gap, mild, speed), over=use.evict_over)
        rules = BucketRules(at, policy.short_hold_seconds, gap, frozen)
        short = pour(short, rules, over=use.short_over)
        taking = pour(
            taking, BucketRules(at, policy.hold_seconds, gap, frozen, speed), over=use.taking
        )
        if use.recalled is not False or recall is not EMPTY:
            rules = BucketRules(at, policy.give_back_seconds, gap, frozen)
            recall = asked_time(recall, rules, over=use.recalled)
    others = hold is EMPTY and short is EMPTY and taking is EMPTY and recall is EMPTY
    return NO_WATCH if report is EMPTY and others else Watch(report, hold, short, taking, recall)
