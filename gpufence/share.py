"""
From a limit to what a framework is told: allowance, fraction, and the smallest limit that works.

A framework's own cap counts tensors. The CUDA context, cuBLAS and loaded modules live outside every
allocator, so what a framework may take is the limit less a reserve. Exact integers throughout,
rounded down: a fraction is never zero (most frameworks read that as "no limit") and never above
limit / card.
"""

from __future__ import annotations

from typing import NamedTuple

from gpufence.annotations import Headroom
from gpufence.quantity import MIB

LEAST_ALLOWANCE = 128 * MIB
"""Below this no framework starts: the limit is too small for a card's own overhead."""

AUTO_HEADROOM = 1536 * MIB
"""What `headroom: auto` leaves at most to what no framework counts."""

FACTOR_TENTHS = 7
"""Of a limit a framework may use so many tenths: TensorFlow's rule of thumb."""

CAP_SLACK = 256 * MIB
"""A process that holds this much more than it was told has not kept to it."""

_TENSORFLOW_RESERVE = 256 * MIB
_SEVERAL_CARDS_RESERVE = 768 * MIB
_MILLION = 10**6


class ShareTerms(NamedTuple):
    """
    What besides the limit decides an allowance.

    `reserve_bytes` is C of the design: what one process needs outside its framework's allocator.
    """

    reserve_bytes: int
    processes: int = 1
    headroom: Headroom = Headroom.FACTOR


class Allowance(NamedTuple):
    """
    What one process may allocate on one card, kept as an exact quotient of bytes.

    Rounding happens once, when a value is written: 0.7 of 3 GiB is 0.140000 of a T4, while whole
    bytes first would make it 0.139999. `starved` marks a limit so small that the process will break
    it whatever it is told.
    """

    numerator: int
    denominator: int
    starved: bool

    @property
    def bytes(self) -> int:
        return self.numerator // self.denominator


def reserve_bytes(
    compute_capability: tuple[int, int] | None,
    measured: int | None = None,
    *,
    tensorflow: bool = False,
    cards: int = 1,
) -> int:
    """
    Return the memory one process holds outside its framework's allocator, by the card's generation
    where its context was not measured.

    An unknown generation counts as 8.x, the middle.
    """
    major = compute_capability[0] if compute_capability else 8
    mebibytes = 512 if major < 8 else 640 if major < 9 else 768  # noqa: PLR2004 - generations
    base = mebibytes * MIB if measured is None else measured
    extra = _TENSORFLOW_RESERVE if tensorflow else 0
    return base + extra + (_SEVERAL_CARDS_RESERVE if cards > 1 else 0)


def allowance(limit_bytes: int, card_bytes: int, terms: ShareTerms) -> Allowance:
    """
    Return what each process may allocate under a limit, which counts as no more than the card;
    reckoned in tenths of a byte, and below zero where the contexts alone are too big.
    """
    limit = min(limit_bytes, card_bytes)
    contexts = 10 * terms.processes * terms.reserve_bytes
    if terms.headroom is Headroom.FACTOR:
        tenths = min(FACTOR_TENTHS * limit, 10 * limit - contexts)
    else:
        left = min((10 - FACTOR_TENTHS) * limit, 10 * AUTO_HEADROOM)
        tenths = 10 * limit - max(contexts, left)
    if tenths >= 10 * terms.processes * LEAST_ALLOWANCE:
        return Allowance(tenths, 10 * terms.processes, starved=False)
    return Allowance(max(min(LEAST_ALLOWANCE, limit // terms.processes), 1), 1, starved=True)


def smallest_limit(terms: ShareTerms) -> int:
    """Return the smallest limit, in whole MiB, that leaves every process its least allowance."""
    wanted = terms.processes * LEAST_ALLOWANCE
    reserved = wanted + terms.processes * terms.reserve_bytes
    by_factor = -(-wanted * 10 // FACTOR_TENTHS)
    by_headroom = min(by_factor, wanted + AUTO_HEADROOM)
    limit = max(reserved, by_factor if terms.headroom is Headroom.FACTOR else by_headroom)
    return -(-limit // MIB) * MIB


def write_fraction(part: int, whole: int) -> str:
    """
    Render part / whole with six decimals, rounded down; never zero and never above one.

    Where six decimals would say zero, as many more are written as it takes to say more than zero.
    """
    counted = min(max(part, 1), whole)
    decimals = 6
    digits = counted * _MILLION // whole
    while not digits:
        decimals += 1
        digits = counted * 10**decimals // whole
    scale = 10**decimals
    return f"{digits // scale}.{digits % scale:0{decimals}d}"
