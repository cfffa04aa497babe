"""What agents would measure of a workload, and what its limit ought to be."""

from dataclasses import dataclass

from gpufence.need import NeedDay, NeedKey
from gpufence.need.measured import FULL_PERCENT
from gpufence.share import FACTOR_TENTHS, ShareTerms, allowance, smallest_limit
from tests.property.need.workloads import DAYS, Day, Workload

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
    )
    return MeasuredDay(row, tuple(samples))


def _wanted(workload: Workload, step: int, may: int | None) -> int:
    if not workload.takes_all:
        return step
    free = int(workload.card.memory_bytes * _TAKES_WITHOUT_LIMIT)
    return free if may is None else _most(workload, may)


def _most(workload: Workload, may: int) -> int:
    """Return what all processes get together until the largest of them is refused."""
    return int(may / max(workload.parts))
