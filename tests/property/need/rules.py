"""
How others make a figure of what was measured, as far as their documentation and code tell.

Each returns the memory it would leave to a pod, its margin included, or None where it wants to see
more. All of them know CPU and host memory or one vGPU; none knows what a framework may be told.
"""

from collections.abc import Callable, Iterator, Sequence
from math import log

from gpufence.quantity import MIB
from tests.property.need.measuring import MeasuredDay
from tests.property.need.workloads import STEPS

Rule = Callable[[Sequence[MeasuredDay]], int | None]

_MARGIN = 1.15
_LEAST_BUCKET = 10**7
_GROWTH = 1.05
_WINDOWS = 8
_RAISE = 1.2
_LEAST_RAISE = 100 * MIB


def tensor_fusion(days: Sequence[MeasuredDay]) -> int | None:
    """The 98th percentile of all samples, and 15 %."""
    return int(_percentile([(sample, 1.0) for sample in _samples(days)], 0.98) * _MARGIN)


def krr(days: Sequence[MeasuredDay]) -> int | None:
    """
    The maximum and 15 %, or 25 % above a limit at which it was out of memory, once there are 100
    points; of these there are a hundred in two days and some hours.
    """
    samples = list(_samples(days))
    if len(samples) < 2 * STEPS:
        return None
    return int(max(max(samples) * _MARGIN, 1.25 * max(_refused(days), default=0)))


def vpa(days: Sequence[MeasuredDay]) -> int | None:
    """
    The peaks of eight days in a histogram whose buckets grow by 5 % and whose weights halve each
    day: the 90th percentile and 15 %.
    """
    return _vpa(days, 0.9)


def vpa_upper(days: Sequence[MeasuredDay]) -> int | None:
    """Its upper bound: the 95th percentile and 15 %, times 1 + 1 / days."""
    return int(_vpa(days, 0.95) * (1 + 1 / len(days)))


def _vpa(days: Sequence[MeasuredDay], share: float) -> int:
    newest = list(reversed(days))[:_WINDOWS]
    weighted = [(_bucket(_vpa_peak(day)), 0.5**age) for age, day in enumerate(newest)]
    return int(_percentile(weighted, share) * _MARGIN)


def _vpa_peak(day: MeasuredDay) -> int:
    """Return a day's peak; one that was out of memory counts a fifth more, at least 100 MiB."""
    peak = max(day.samples)
    if not list(_refused([day])):
        return peak
    return int(max(peak * _RAISE, peak + _LEAST_RAISE))


def _bucket(amount: int) -> int:
    """Return the end of the bucket that an amount falls into."""
    ratio = _GROWTH - 1
    place = int(log(amount * ratio / _LEAST_BUCKET + 1) / log(_GROWTH))
    return int(_LEAST_BUCKET * (_GROWTH ** (place + 1) - 1) / ratio)


def _percentile(weighted: Sequence[tuple[int, float]], share: float) -> int:
    wanted = share * sum(weight for _, weight in weighted)
    for amount, weight in sorted(weighted):
        wanted -= weight
        if wanted <= 0:
            return amount
    return max(weighted)[0]


def _samples(days: Sequence[MeasuredDay]) -> Iterator[int]:
    for day in days:
        yield from day.samples


def _refused(days: Sequence[MeasuredDay]) -> Iterator[int]:
    for day in days:
        if limit := max(day.row.out_of_memory_limit_bytes, day.row.evicted_limit_bytes):
            yield limit


RULES: dict[str, Rule] = {
    "p98 and 15 % (TensorFusion)": tensor_fusion,
    "maximum and 15 % (KRR)": krr,
    "p90 of a decaying histogram and 15 % (VPA, target)": vpa,
    "p95 of the same, times 1 + 1/days (VPA, upper bound)": vpa_upper,
}
