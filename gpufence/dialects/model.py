"""
What a dialect can say about a pod, and the small words they all use.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import GIB, read_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.pods import Container, Pod

LARGEST_CARD = 4096 * GIB
"""No card holds more: a declared amount above it is a mistaken unit, and the pod never starts."""


class Dialect(StrEnum):
    """
    The sharing systems gpufence understands, by the name users see.
    """

    GPUSHARE = "gpushare"
    VOLCANO = "volcano"
    VOLCANO_VGPU = "volcano-vgpu"
    HAMI = "hami"
    KAI = "kai"
    NVIDIA = "nvidia"
    MIG = "mig"
    ANNOTATION = "annotation"  # no resource at all, only gpufence.io/memory


class Sum(StrEnum):
    """
    How the dialect's scheduler adds up the containers of a pod.
    """

    KUBERNETES = "kubernetes"  # the larger of the pod's life and each init container's
    REGULAR = "regular"  # containers only, init containers and sidecars do not count
    LARGEST_INIT = "largest-init"  # containers, or the largest init container if larger


class Units(NamedTuple):
    """
    What a node, or a setting in its place, says about the numbers a pod carries.

    `gpushare_bytes` is None where the node's own figures are ambiguous. `clients` is how many pods
    may share a card of `nvidia.com/gpu`, None where nothing says so.
    """

    gpushare_bytes: int | None = GIB
    volcano_factor: int = 1
    clients: int | None = None
    driver_caps: bool = False


class Amount(NamedTuple):
    """
    Memory on one card: bytes, or `share` = (numerator, denominator) of whatever card it will be.
    """

    bytes: int = 0
    share: tuple[int, int] | None = None

    def on_card(self, card_bytes: int | None) -> int | None:
        """
        Return the bytes on a card of this size, rounded down; None where the size is unknown.
        """
        if self.share is None:
            return self.bytes
        return None if card_bytes is None else card_bytes * self.share[0] // self.share[1]


WHOLE_CARD = Amount(share=(1, 1))


class Claim(NamedTuple):
    """
    What one container declares: an amount on each of so many cards.
    """

    container: str
    amount: Amount
    cards: int = 1


class Declared(NamedTuple):
    """
    A pod that says how much it uses.

    `implied` marks an amount nobody wrote, the share that the node's settings imply.
    `library_caps` marks systems that cap by themselves and show the container its limit as the
    card's total: there gpufence injects nothing.
    """

    dialect: Dialect
    claims: tuple[Claim, ...]
    basis: str
    sum: Sum = Sum.KUBERNETES
    library_caps: bool = False
    implied: bool = False
    profile: str = ""
    notes: tuple[Problem, ...] = ()


class Undeclared(NamedTuple):
    """
    A pod that says nothing about GPU memory.
    """

    reason: str


class Unreadable(NamedTuple):
    """
    A pod that says something nobody can act on; `never_runs` where its scheduler cannot either.
    """

    problem: Problem
    never_runs: bool = False


class NeverRunsError(InvalidError):
    """
    Raised for a declaration that no node can ever satisfy.
    """


def requested(pod: Pod, *resources: str) -> Iterator[tuple[Container, dict[str, int]]]:
    """
    Yield each container that asks for any of the resources, with the counts it asks for.

    Zero counts as not asked for, as it does to Kubernetes.
    """
    for container in pod.containers:
        asked = [resource for resource in resources if resource in container.limits]
        if asked:
            field = f"{container.field}.resources.limits"
            counts = {
                item: read_count(container.limits[item], f"{field}[{item}]") for item in asked
            }
            wanted = {item: count for item, count in counts.items() if count}
            if wanted:
                yield container, wanted


def amount_of(container: Container, resource: str, units: int, unit_bytes: int) -> Amount:
    """
    Return units as bytes, refusing what no card of any make can hold.
    """
    if units * unit_bytes <= LARGEST_CARD:
        return Amount(units * unit_bytes)
    raise NeverRunsError(
        Problem(
            f"{container.field}.resources.limits[{resource}]",
            str(container.limits[resource]),
            f"is {units} units of {unit_bytes} bytes, more than any card holds",
            "write the plain number of units, without a suffix",
        )
    )


def percentage(container: Container, resource: str, percent: int) -> Amount:
    """
    Return a percentage of each card, refusing more than a card.
    """
    whole = 100
    if percent <= whole:
        return Amount(share=(percent, whole))
    raise NeverRunsError(
        Problem(
            f"{container.field}.resources.limits[{resource}]",
            str(container.limits[resource]),
            "is more than a whole card",
            "write a percentage from 1 to 100",
        )
    )
