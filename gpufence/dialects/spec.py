"""What a sharing system is to gpufence, and what it can say about a pod."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gpufence.errors import InvalidError, Problem
from gpufence.names import GPUSHARE_UNIT
from gpufence.quantity import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpufence.pods import Container, Pod

_TOLERANCE_PERCENT = 2
LARGEST_CARD = 4096 * GIB
"""No card holds more: a declared amount above it is a mistaken unit, and the pod never starts."""


class Sum(StrEnum):
    """How the dialect's scheduler adds up the containers of a pod."""

    KUBERNETES = "kubernetes"  # the larger of the pod's life and each init container's
    REGULAR = "regular"  # containers only, init containers and sidecars do not count
    LARGEST_INIT = "largest-init"  # containers, or the largest init container if larger


class Units(NamedTuple):
    """
    What a node, or a setting in its place, says about the numbers a pod carries.

    `gpushare_bytes` is None where the node's own figures are ambiguous. `clients` is how many pods
    may share a card of `nvidia.com/gpu`, `claim_bytes` what a resource claim for a card without an
    amount consumes there at least; None where nothing says so.
    """

    gpushare_bytes: int | None = GIB
    volcano_factor: int = 1
    clients: int | None = None
    driver_caps: bool = False
    claim_bytes: int | None = None


class Amount(NamedTuple):
    """
    Memory on one card: bytes, or `share` = (numerator, denominator) of whatever card it will be,
    the smaller where both are given; not `known` where only the scheduler's own decision tells.
    """

    bytes: int = 0
    share: tuple[int, int] | None = None
    known: bool = True

    def on_card(self, card_bytes: int | None) -> int | None:
        """Return the bytes on a card of this size, rounded down; None where the size is unknown."""
        if not self.known:
            return None
        if self.share is None:
            return self.bytes
        if card_bytes is None:
            return None
        part = card_bytes * self.share[0] // self.share[1]
        return min(part, self.bytes) if self.bytes else part


WHOLE_CARD = Amount(share=(1, 1))
UNKNOWN_AMOUNT = Amount(known=False)


class Claim(NamedTuple):
    """What one container declares: an amount on each of so many cards."""

    container: str
    amount: Amount
    cards: int = 1


class Declared(NamedTuple):
    """
    A pod that says how much it uses.

    `implied` marks an amount nobody wrote, the share that the node's settings imply.
    `library_caps` marks systems that cap by themselves and show the container its limit as the
    card's total: there gpufence injects nothing. `most_bytes` is what all containers together have
    on any one card, where the dialect knows that better than their sum. `promised` is what others
    must leave to the pod on each card, where that is less than it may hold.
    """

    dialect: str
    claims: tuple[Claim, ...]
    basis: str
    sum: Sum = Sum.KUBERNETES
    library_caps: bool = False
    implied: bool = False
    profile: str = ""
    notes: tuple[Problem, ...] = ()
    most_bytes: int | None = None
    promised: Amount | None = None


class Undeclared(NamedTuple):
    """A pod that says nothing about GPU memory."""

    reason: str


class Unreadable(NamedTuple):
    """
    A pod that says something nobody can act on, by its own words or because its node does not tell
    what their numbers mean.
    """

    problem: Problem
    own_words: bool = True


class GpuRequest(NamedTuple):
    """A container with the GPU resources it asks for; zero counts as not asked for."""

    container: Container
    counts: Mapping[str, int]


class DialectSpec(NamedTuple):
    """
    All that gpufence has to know of one sharing system, in one place.

    `name` is what plans, tables and settings call it. Its pods are known by `resources`, by the
    beginning of a resource's name (`prefix`), by `annotation_keys`, or where they ask for nothing
    else by keys of their containers (`container_keys`: beginning and ends); `read` makes a
    declaration of them, or None where there is no amount after all. `refines` are resources of
    other dialects that mean something else beside its own, and `advertised_as` names the resource
    under which nodes list one that only the scheduler reads.

    `bookkeeping` are the annotations that its scheduler and device plugin write on pods, and
    `container_bookkeeping` the ends of those for one container, `card_key`
    the one of them with the index of the assigned card, and `node_figures` what else its nodes list
    that tells the unit. `system` and `unit` are for the documentation.

    `unit_bytes` says of each resource or annotation that counts memory what one of it is on a node,
    None where that is not certain; `percentages` are resources that count hundredths of a card.
    `by_claims`: its pods are known by what their resource claims ask for, and no node lists its
    resources.
    """

    name: str
    system: str
    unit: str
    read: Callable[[Pod, Sequence[GpuRequest], Units], Declared | None]
    resources: tuple[str, ...] = ()
    prefix: str = ""
    annotation_keys: tuple[str, ...] = ()
    container_keys: tuple[str, tuple[str, ...]] = ("", ())
    container_bookkeeping: tuple[str, ...] = ()
    refines: frozenset[str] = frozenset()
    advertised_as: Mapping[str, str] = MappingProxyType({})
    scheduler: str = ""
    library_caps: bool = False
    bookkeeping: tuple[str, ...] = ()
    card_key: str = ""
    node_figures: tuple[str, ...] = ()
    unit_bytes: Mapping[str, Callable[[Units], int | None]] = MappingProxyType({})
    percentages: frozenset[str] = frozenset()
    by_claims: bool = False

    def is_asked_by(self, resource: str) -> bool:
        """Return whether a resource is one of the system's own."""
        return resource in self.resources or bool(self.prefix and resource.startswith(self.prefix))

    def is_said_by(self, key: str) -> bool:
        """Return whether an annotation declares something to the system."""
        beginning, ends = self.container_keys
        return key in self.annotation_keys or (key.startswith(beginning) and key.endswith(ends))

    @property
    def setting(self) -> str:
        """Return the name as the variables of settings have it: VOLCANO_VGPU."""
        return self.name.upper().replace("-", "_")


class UnknownUnitError(InvalidError):
    """
    Raised for a number whose meaning only the node could tell, and does not: no fault of the pod's.
    """


def amount_of(container: Container, resource: str, units: int, unit_bytes: int) -> Amount:
    """Return units as bytes, refusing what no card of any make can hold."""
    if units * unit_bytes <= LARGEST_CARD:
        return Amount(units * unit_bytes)
    remedy = "write the plain number of units, without a suffix"
    if unit_bytes == GIB and units * MIB <= LARGEST_CARD:
        remedy = f"write GiB, or where nodes count MiB set {GPUSHARE_UNIT}=MiB for the webhook"
    raise InvalidError(
        Problem(
            f"{container.field}.resources.limits[{resource}]",
            str(container.gpu[resource]),
            f"is {units} units of {unit_bytes} bytes, more than any card holds",
            remedy,
        )
    )


def percentage(container: Container, resource: str, percent: int) -> Amount:
    """Return a percentage of each card, refusing more than a card."""
    whole = 100
    if percent <= whole:
        return Amount(share=(percent, whole))
    raise InvalidError(
        Problem(
            f"{container.field}.resources.limits[{resource}]",
            str(container.gpu[resource]),
            "is more than a whole card",
            "write a percentage from 1 to 100",
        )
    )


def is_near(value: int, wanted: int) -> bool:
    """Return whether a figure is what it should be, but for rounding and what a driver keeps."""
    return abs(value - wanted) * 100 <= wanted * _TOLERANCE_PERCENT


def way_of(declared: Declared) -> str:
    """Name what a declaration counts, and whose it is."""
    return f"{declared.dialect} ({declared.basis})"


def two_ways(ways: Sequence[str]) -> Problem:
    """Name what a pod declares in more than one way: each system keeps its own bookkeeping."""
    return Problem(
        "resources.limits",
        ", ".join(ways),
        "are two ways to declare GPU memory in one pod",
        "keep the one whose scheduler runs the pod",
    )
