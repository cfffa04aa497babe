"""
PURE. The sums behind every value: for one container, on every card it might meet, the smallest.
"""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from gpufence.annotations import Headroom
from gpufence.quantity import GIB, MIB
from gpufence.share import (
    LEAST_ALLOWANCE,
    Allowance,
    ShareTerms,
    allowance,
    reserve_bytes,
    smallest_limit,
    write_fraction,
)

_EXACT = 10**18  # finer than any fraction is written, so that the order of fractions is kept


class Injecting(Enum):
    """What is to become of the settings."""

    SET = "set"
    PLAN = "plan"  # observe: only written down
    GROW = "grow"  # observe with growth: written down, and grow-on-demand set
    NOTHING = "nothing"  # opted out, or nothing to inject


class PodTerms(NamedTuple):
    """
    What holds for every container of a pod.

    `fenced` is False where nothing enforces the limit; `bound` is True when the variables stand as
    they are and only their values can change. `args` lets a server's flag be set, `asks_args` says
    that the pod itself asks for it. `reserve_override` replaces the table of reserves. A pod that
    `bursts` says how far; `burst_servers` lets its servers do so, too. A container `gives_back`
    where such a pod has the start-up hook mounted there.
    """

    injecting: Injecting
    fenced: bool
    bound: bool
    args: bool
    asks_args: bool
    hook: bool
    processes: int
    headroom: Headroom
    reserve_override: int | None
    bursts: bool = False
    burst_servers: bool = False
    gives_back: bool = False


class LimitOnCard(NamedTuple):
    """
    A card that a container might meet, and its limit on each of so many; None where unknown. Where
    the driver holds the container, that shows it its limit as the card. `measured_bytes` is what a
    context takes there, where the operator has it measured. `request_bytes` is what is promised of
    the limit, None for all of it.
    """

    limit_bytes: int | None
    cards: int
    card_bytes: int | None
    compute_capability: tuple[int, int] | None
    measured_bytes: int | None = None
    driver: bool = False
    request_bytes: int | None = None

    @property
    def bursts(self) -> bool:
        return self.request_bytes is not None


class Basis(IntEnum):
    """What a value is reckoned from: its place among the sums of a container."""

    PLAIN = 0  # the limit less the context
    TENSORFLOW = 1  # the same with TensorFlow's larger context, always by the factor
    SHARE = 2  # the limit itself: what nothing may go beyond
    SERVER = 3  # all of the limit but the contexts, for servers that plan with the rest


class Base(StrEnum):
    """
    Of what a reader takes its value where the driver holds its container: there `cuMemGetInfo` says
    the limit for the card, and nothing is published of other ways to ask.
    """

    LIMIT = "limit"  # it asks cuMemGetInfo
    AMOUNT = "amount"  # bytes are the same of either
    UNKNOWN = "unknown"  # limit or card, by version: reckoned of the limit, since the driver holds
    NOTHING = "nothing"  # likewise unknown, and it gets no value, since a cap of its own is no use


_COMMON = (Basis.PLAIN, Basis.TENSORFLOW)


class CardFigures(NamedTuple):
    """
    L, C, T and A of one card, the first four as the plan has them.

    `fraction` is A / T as programs read it, empty where no card is known; `exact` is A as a
    quotient, so that whatever is made of it is rounded once. With `driver` the driver holds the
    container to L, and T is what it shows as the card.
    """

    limit_bytes: int
    reserve_bytes: int
    card_bytes: int | None
    allowance_bytes: int
    fraction: str
    exact: Allowance
    driver: bool = False

    @property
    def ratio(self) -> Fraction:
        """Return A / T exactly, or A / L where no card is known."""
        whole = self.limit_bytes if self.card_bytes is None else self.card_bytes
        return Fraction(self.exact.numerator, self.exact.denominator * whole)

    @property
    def allowance_mebibytes(self) -> int:
        """Return A in whole MiB, at least one: zero would be no limit."""
        return max(self.allowance_bytes // MIB, 1)

    @property
    def rest_bytes(self) -> int:
        """Return T - A: what is to be left free on the card; for figures of a known card only."""
        return (self.card_bytes or 0) - self.allowance_bytes

    @property
    def rest_mebibytes(self) -> int:
        """Return T - A in MiB, rounded up."""
        return -(-self.rest_bytes // MIB)

    @property
    def rest_gibibytes(self) -> str:
        """Return T - A in GiB, rounded up to a thousandth."""
        thousandths = -(-self.rest_bytes * 1000 // GIB)
        return f"{thousandths // 1000}.{thousandths % 1000:03}"


class Smallest(NamedTuple):
    """
    The figures that lead to the smallest fraction of a card and to the smallest amount.

    `rest` leads to the largest amount to be left free, which only servers ask for. They may be of
    different cards. None where no card, or no limit, is known.
    """

    fraction: CardFigures | None
    amount: CardFigures | None
    rest: CardFigures | None


class TooSmall(NamedTuple):
    """A limit that leaves a framework no room on any card, and the smallest one that would."""

    limit_bytes: int
    reserve_bytes: int
    sufficient_bytes: int


class ContainerFigures(NamedTuple):
    """
    What is safe for one container on whichever card it meets; `by_basis` is indexed by `Basis`, and
    ends where only known programs ask for more. `driver_bytes` is what the driver holds it to.
    """

    limit_bytes: int | None
    by_basis: tuple[Smallest, ...]
    too_small: TooSmall | None
    driver_bytes: int | None = None


@lru_cache(maxsize=128)
def container_figures(
    cards: tuple[LimitOnCard, ...], terms: PodTerms, *, servers: bool = False
) -> ContainerFigures:
    """
    Work out the figures of one container from its limit on each card it might meet; with those
    that only `servers` ask for, which few containers are. Remembered: most of a pod are alike.
    """
    plain, *others = (
        [figures for card in cards if (figures := _on_card(card, terms, basis))]
        for basis in (Basis if servers else _COMMON)
    )
    starved = all(item.exact.starved for item in plain)
    return ContainerFigures(
        limit_bytes=min((item.limit_bytes for item in plain), default=None),
        by_basis=tuple([_smallest(each, servers=servers) for each in (plain, *others)]),
        too_small=_too_small(plain, terms) if plain and starved else None,
        driver_bytes=cards[0].card_bytes if cards[0].driver else None,
    )


def _on_card(card: LimitOnCard, terms: PodTerms, basis: Basis) -> CardFigures | None:
    limit, size = card.limit_bytes, card.card_bytes
    if limit is None:
        return None
    whole = limit if size is None else size
    if basis is Basis.SHARE:
        reserve = 0
        may = Allowance(min(limit, whole), terms.processes, starved=False)
    else:
        tensorflow = basis is Basis.TENSORFLOW
        own, override = card.measured_bytes, terms.reserve_override
        reserve = (
            reserve_bytes(card.compute_capability, own, tensorflow=tensorflow, cards=card.cards)
            if override is None or own is not None
            else override
        )
        headroom = Headroom.FACTOR if tensorflow else terms.headroom
        may = allowance(limit, whole, ShareTerms(reserve, terms.processes, headroom))
        left = min(limit, whole) - terms.processes * reserve
        exact = basis is Basis.SERVER or card.driver
        if exact and left >= terms.processes * LEAST_ALLOWANCE:
            may = Allowance(left, terms.processes, starved=False)
    fraction = "" if size is None else write_fraction(may.numerator, may.denominator * size)
    return CardFigures(limit, reserve, size, may.bytes, fraction, may, card.driver)


def _smallest(figures: list[CardFigures], *, servers: bool) -> Smallest:
    if len(figures) == 1:  # a cluster of one kind of card
        (only,) = figures
        card = None if only.card_bytes is None else only
        return Smallest(card, only, card if servers else None)
    placed = [item for item in figures if item.card_bytes is not None]
    return Smallest(
        fraction=min(placed, key=_order, default=None),
        amount=min(figures, key=lambda item: item.allowance_bytes, default=None),
        rest=max(placed, key=lambda item: item.rest_bytes, default=None) if servers else None,
    )


def _order(figures: CardFigures) -> int:
    may = figures.exact
    return may.numerator * _EXACT // (may.denominator * (figures.card_bytes or 1))


def _too_small(plain: list[CardFigures], terms: PodTerms) -> TooSmall:
    """Return what to say of a limit that is too small even on the best card."""
    best = min(plain, key=lambda item: item.reserve_bytes)
    enough = smallest_limit(ShareTerms(best.reserve_bytes, terms.processes, terms.headroom))
    return TooSmall(best.limit_bytes, best.reserve_bytes, enough)
