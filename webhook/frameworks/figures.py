"""
PURE. The sums behind every value: for one container, on every card it might meet, the smallest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from gpufence.annotations import Headroom
from gpufence.share import Allowance, ShareTerms, allowance, reserve_bytes, smallest_limit

_EXACT = 10**18  # finer than any fraction is written, so that the order of fractions is kept


class Basis(StrEnum):
    """
    What a value is reckoned from.
    """

    PLAIN = "plain"  # the limit less the context
    TENSORFLOW = "tensorflow"  # the same with TensorFlow's larger context, always by the factor
    SHARE = "share"  # the limit itself, for programs that count their own context


@dataclass(frozen=True, slots=True)
class Met:
    """
    A card that a container might meet, and the container's limit there; None where unknown.
    """

    limit_bytes: int | None
    card_bytes: int | None
    compute_capability: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Reckoning:
    """
    Everything the sums of one container depend on.
    """

    met: tuple[Met, ...]
    several_cards: bool = False
    processes: int = 1
    headroom: Headroom = Headroom.FACTOR
    reserve_override: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """
    L, C, T and A of one card; A exactly, so that a fraction of it is rounded once.
    """

    limit_bytes: int
    reserve_bytes: int
    card_bytes: int | None
    may: Allowance

    @property
    def starved(self) -> bool:
        return self.may.starved

    @property
    def allowance_bytes(self) -> int:
        return self.may.bytes

    @property
    def ratio(self) -> Fraction:
        """
        Return A / T, exactly.
        """
        return Fraction(self.may.numerator, self.may.denominator * self.card)

    @property
    def fraction(self) -> str:
        """
        Return A / T as it is written for programs.
        """
        return self.may.fraction_of(self.card)

    @property
    def card(self) -> int:
        """
        Return the card's memory, or the limit in place of a card that nobody knows.
        """
        return self.limit_bytes if self.card_bytes is None else self.card_bytes


@dataclass(frozen=True, slots=True)
class Smallest:
    """
    The figures that lead to the smallest fraction of a card and to the smallest amount.

    They may be of different cards. None where no card, or no limit, is known.
    """

    fraction: Figures | None
    amount: Figures | None


@lru_cache(maxsize=4096)
def smallest(reckoning: Reckoning, basis: Basis) -> Smallest:
    """
    Return what is safe on whichever card the container meets.
    """
    found = [item for met in reckoning.met if (item := _figures(reckoning, met, basis))]
    sized = [item for item in found if item.card_bytes is not None]
    return Smallest(
        fraction=min(sized, key=_order, default=None),
        amount=min(found, key=lambda item: item.allowance_bytes, default=None),
    )


def starved_everywhere(reckoning: Reckoning) -> Figures | None:
    """
    Return the figures of the best card if the limit is too small even there, else None.
    """
    found = [item for met in reckoning.met if (item := _figures(reckoning, met, Basis.PLAIN))]
    best = min(found, key=lambda item: item.reserve_bytes, default=None)
    return best if best is not None and all(item.starved for item in found) else None


def sufficient_limit(reckoning: Reckoning, figures: Figures) -> int:
    """
    Return the smallest limit with which the container could work on that card.
    """
    terms = ShareTerms(figures.reserve_bytes, reckoning.processes, reckoning.headroom)
    return smallest_limit(terms)


def _figures(reckoning: Reckoning, met: Met, basis: Basis) -> Figures | None:
    limit, card = met.limit_bytes, met.card_bytes
    if limit is None:
        return None
    if basis is Basis.SHARE:
        part = min(limit, limit if card is None else card)
        return Figures(limit, 0, card, Allowance(part, reckoning.processes, starved=False))
    tensorflow = basis is Basis.TENSORFLOW
    reserve = reckoning.reserve_override
    if reserve is None:
        cards = 2 if reckoning.several_cards else 1
        reserve = reserve_bytes(met.compute_capability, tensorflow=tensorflow, cards=cards)
    headroom = Headroom.FACTOR if tensorflow else reckoning.headroom
    terms = ShareTerms(reserve, reckoning.processes, headroom)
    may = allowance(limit, limit if card is None else card, terms)
    return Figures(limit, reserve, card, may)


def _order(figures: Figures) -> int:
    may = figures.may
    return may.numerator * _EXACT // (may.denominator * figures.card)
