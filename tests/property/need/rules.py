"""What an agent measures of a workload, and the rules that make a limit of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log

from gpufence.need import NeedDay, NeedKey
from gpufence.need.levels import Levels, held_longer, level_of
from gpufence.need.measured import FULL_PERCENT
from gpufence.quantity import MIB
from gpufence.share import FACTOR_TENTHS, ShareTerms, allowance, smallest_limit
from tests.property.need.workloads import DAYS, STEPS, Day, Workload

_TAKES_WITHOUT_LIMIT = 0.9
_OVERSHOOT = 1.1


@dataclass(frozen=True)
class MeasuredDay:
    """A row of the need, and the samples that other rules reckon with."""

    row: NeedDay
    samples: tuple[int, ...]


def key_of(workload: Workload) -> NeedKey:
    return NeedKey("models", "Deployment", workload.name, "server", workload.card.model)


def measure(workload: Workload) -> list[MeasuredDay]:
    return [_day(workload, day, at) for at, day in enumerate(workload.days[:DAYS])]


def required_limit(workload: Workload, allocated: int) -> int:
    """
    Return the least limit, to the byte, under which a workload gets what it allocates: the pod's
    processes stay within it, and each is told at least what it takes.
    """
    largest = int(allocated * max(workload.parts))
    shares, reserve = workload.shares, workload.card.reserve_bytes
    return max(
        held(workload, allocated),
        -(-shares * largest * 10 // FACTOR_TENTHS),
        shares * largest + shares * reserve,
        smallest_limit(ShareTerms(reserve, shares)),
    )


def held(workload: Workload, allocated: int) -> int:
    """Return what the driver shows: tensors, and a context for each process."""
    whole = allocated + len(workload.parts) * workload.context_bytes
    return min(whole, workload.card.memory_bytes)


def told(workload: Workload, limit_bytes: int | None) -> int | None:
    """Return what one process is told; None where nobody tells it anything."""
    if limit_bytes is None or not workload.told:
        return None
    terms = ShareTerms(workload.card.reserve_bytes, workload.shares)
    return allowance(limit_bytes, workload.card.memory_bytes, terms).bytes


def _day(workload: Workload, day: Day, at: int) -> MeasuredDay:
    may = told(workload, day.limit_bytes)
    wanted = [_wanted(workload, step, may) for step in day.steps]
    got = [step if may is None else min(step, _most(workload, may)) for step in wanted]
    samples = [held(workload, step) for step in got]
    evicted = 0
    if may is None and day.limit_bytes is not None and max(samples) > day.limit_bytes:
        evicted = min(max(samples), int(day.limit_bytes * _OVERSHOOT))
        samples = [min(sample, evicted) for sample in samples]
    refused = may is not None and max(day.steps) > _most(workload, may)
    peak = max(samples)
    largest = int((peak - len(workload.parts) * workload.context_bytes) * max(workload.parts))
    full = may is not None and largest * 100 >= may * FULL_PERCENT
    row = NeedDay(
        day=f"2026-11-{at + 1:02}",
        peak_bytes=peak,
        pods=day.pods,
        processes=len(workload.parts),
        held_seconds=day.hours * 3600,
        capped=full,
        told_bytes=may,
        limit_bytes=day.limit_bytes,
        evicted_bytes=evicted,
        evicted_limit_bytes=day.limit_bytes or 0 if evicted else 0,
        evictions=int(bool(evicted)),
        out_of_memory_limit_bytes=(day.limit_bytes or 0) if refused else 0,
        process_bytes=largest + workload.context_bytes,
        started=day.started,
        shares=workload.shares,
        levels=_levels(samples, day.hours * 3600),
    )
    return MeasuredDay(row, tuple(samples))


def _levels(samples: Sequence[int], seconds: float) -> Levels:
    levels: Levels = ()
    for sample in samples:
        levels = held_longer(levels, level_of(sample), seconds / len(samples))
    return levels


def _wanted(workload: Workload, step: int, may: int | None) -> int:
    if not workload.takes_all:
        return step
    free = int(workload.card.memory_bytes * _TAKES_WITHOUT_LIMIT)
    return free if may is None else _most(workload, may)


def _most(workload: Workload, may: int) -> int:
    """Return what all processes get together until the largest of them is refused."""
    return int(may / max(workload.parts))


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
