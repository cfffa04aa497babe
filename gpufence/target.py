"""
From what was measured to a limit under which it fits: the share rule, backwards.

The one place for it: what is advised, recommended and kept in profiles is the same. A framework may
use seven tenths of its part, and all of it but the contexts (gpufence.share). What was measured
holds both; how much of it the contexts are nobody can tell. They count as a quarter of their
reserve, the least that a process with CUDA holds: so the limit is never too small for tensors that
took the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.quantity import MIB
from gpufence.share import FACTOR_TENTHS, ShareTerms, reserve_bytes, smallest_limit

if TYPE_CHECKING:
    from collections.abc import Iterable

MARGIN_PERCENT: Final = 15
"""What a target leaves above the most that was measured; what VPA, KRR and TensorFusion leave."""

RAISE_PERCENT: Final = 25
"""By so much a target is above a limit that was seen to be too small."""

STEP: Final = 64 * MIB
"""Targets are whole steps."""

_LEAST_CONTEXT: Final = 4  # a context is no less than this part of its reserve
_ALL: Final = 100


class MostHeld(NamedTuple):
    """
    The most that a container held on one card, the most processes it was, and what the largest of
    them held, 0 where nobody knows. `shares` is how many processes share its part by its own word.
    """

    peak_bytes: int
    processes: int = 1
    process_bytes: int = 0
    shares: int = 1


class TargetTerms(NamedTuple):
    """
    What besides the measured decides a target. `card_bytes` and `most_bytes` bound it, where known:
    the card's memory, and what the namespace or its owner allows.
    """

    reserve_bytes: int
    margin_percent: int = MARGIN_PERCENT
    card_bytes: int | None = None
    most_bytes: int | None = None


class LimitTarget(NamedTuple):
    """
    A limit, and by which of its grounds: `by_need` is what the measured asks for, `raised_from` the
    limit that was seen to be too small where that decides, `bound_bytes` what cut it short.
    """

    limit_bytes: int
    by_need: int
    raised_from: int | None = None
    bound_bytes: int | None = None


def limit_for(most: MostHeld, reserve_bytes: int, margin_percent: int = MARGIN_PERCENT) -> int:
    """Return the least limit, in whole steps, under which the measured and a margin fit."""
    shares = max(most.shares, 1)
    wanted = _more(most.peak_bytes, margin_percent)
    allocated = shares * _more(_allocated(most, reserve_bytes), margin_percent)
    by_factor = -(-allocated * 10 // FACTOR_TENTHS)
    by_contexts = allocated + shares * reserve_bytes
    least = smallest_limit(ShareTerms(reserve_bytes, shares))
    return _steps(max(wanted, by_factor, by_contexts, least))


def request_for(mostly_bytes: int, margin_percent: int = MARGIN_PERCENT) -> int:
    """
    Return what to request where a limit above it may be used: frameworks are configured by that
    one, so this has to hold what is held, and no rule of shares.
    """
    return _steps(_more(mostly_bytes, margin_percent))


def enough_for(held_bytes: int, processes: int, reserves: Iterable[int]) -> int:
    """Return the limit that would do for what so many processes are seen to hold together."""
    reserve = min(reserves, default=reserve_bytes(None))
    return limit_for(MostHeld(held_bytes, processes, shares=processes), reserve)


def target_for(held: Iterable[MostHeld], too_small_bytes: int, terms: TargetTerms) -> LimitTarget:
    """
    Return the limit for all that was measured, and at least a quarter more than one that was seen
    to be too small, 0 for none. The same limit counts once, however often it was broken; and what
    was raised from it counts only when it is too small itself.
    """
    by_need = max(limit_for(most, terms.reserve_bytes, terms.margin_percent) for most in held)
    raised = _steps(_more(too_small_bytes, RAISE_PERCENT))
    limit = max(by_need, raised)
    bounds = [item for item in (terms.card_bytes, terms.most_bytes) if item is not None]
    bound = min(bounds, default=limit)
    return LimitTarget(
        min(limit, bound),
        by_need,
        too_small_bytes if raised > by_need else None,
        bound if bound < limit else None,
    )


def least_context(reserve_bytes: int) -> int:
    """Return the least that a process with CUDA holds outside its allocator."""
    return reserve_bytes // _LEAST_CONTEXT


def _allocated(most: MostHeld, reserve_bytes: int) -> int:
    """
    Return what the allocator of one process held at most: of the largest, where that is known. Else
    processes that share a part are taken to be alike, and all others for one.
    """
    context = least_context(reserve_bytes)
    if most.process_bytes:
        return max(most.process_bytes - context, 0)
    together = max(most.peak_bytes - max(most.processes, 1) * context, 0)
    return -(-together // max(most.shares, 1))


def _more(amount: int, percent: int) -> int:
    return -(-amount * (_ALL + percent) // _ALL)


def _steps(amount: int) -> int:
    return -(-amount // STEP) * STEP
