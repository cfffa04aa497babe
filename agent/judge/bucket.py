"""
PURE. A leaky bucket of time: fills while over, drains at half the speed while under.

What a sample says holds until the next one. A pod that hovers around its threshold is caught once
it is over for more than a third of the time; one that peaks now and then never is.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.model.memory import EMPTY, Bucket

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


def missing_seconds(bucket: Bucket, hold_seconds: float) -> float:
    return max(hold_seconds - bucket.level_seconds, 0.0)


def is_due(bucket: Bucket, hold_seconds: float) -> bool:
    """
    Tell whether a bucket is full; it acts only while over.

    No sample comes exactly an interval after the last one: without some patience with that, every
    other hold would last an interval longer.
    """
    return bucket.over is True and bucket.level_seconds >= hold_seconds - _JITTER_SECONDS


def _level(bucket: Bucket, rules: Pour) -> float:
    seconds = rules.at - bucket.at
    level = min(bucket.level_seconds, rules.cap_seconds)
    if rules.frozen or bucket.over is None or not 0.0 < seconds <= rules.gap_seconds:
        return level
    if bucket.over:
        return min(level + seconds, rules.cap_seconds)
    return max(level - seconds * _DRAIN, 0.0)
