"""
PURE. How the node's cards are shared: what it advertises, and how much a request stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.quantity import MIB, UNIT_BYTES, read_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.cards import Card

COUNTED = (names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED)
"""Resources that count cards, or shares of them, and carry no amount."""


class Dialect(StrEnum):
    """
    The sharing systems whose nodes can be simulated.
    """

    GPUSHARE = "gpushare"
    VOLCANO = "volcano"
    NVIDIA = "nvidia"
    TIME_SLICING = "time-slicing"
    GKE = "gke"
    HAMI = "hami"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Sharing:
    """
    One node's way to share.

    `unit` is that of `aliyun.com/gpu-mem`, `factor` the device plugin's option of Volcano, and
    `replicas` how many pods a card is offered to: by time-slicing, GKE and HAMi.
    """

    dialect: Dialect = Dialect.NVIDIA
    unit: str = "GiB"
    factor: int = 1
    replicas: int = 4

    @property
    def shares(self) -> int:
        """
        Tell how many requests of one card's resource a card serves.
        """
        shared = {Dialect.TIME_SLICING, Dialect.GKE, Dialect.HAMI}
        return self.replicas if self.dialect in shared else 1

    def units_of(self, card: Card) -> int:
        """
        Return a card's size in gpushare's unit, rounded down as its device plugin does.
        """
        return card.memory_bytes // UNIT_BYTES[self.unit]


def whole_cards(cards: Sequence[Card]) -> tuple[Card, ...]:
    """
    Return the cards that can be given as a whole: neither instances nor cut into instances.
    """
    cut = {card.mig.parent for card in cards if card.mig}
    return tuple(card for card in cards if card.mig is None and card.uuid not in cut)


def profiles(cards: Sequence[Card]) -> dict[str, tuple[Card, ...]]:
    """
    Group the MIG instances by profile.
    """
    found: dict[str, tuple[Card, ...]] = {}
    for card in cards:
        if card.mig is not None:
            found[card.mig.profile] = (*found.get(card.mig.profile, ()), card)
    return found


def amount_bytes(sharing: Sharing, limits: Mapping[str, str]) -> int:
    """
    Return the memory that a container's amounts stand for on one card; 0 where it names none.
    """
    if sharing.dialect is Dialect.GPUSHARE:
        return _count(limits, names.GPUSHARE_MEMORY) * UNIT_BYTES[sharing.unit]
    if sharing.dialect is Dialect.VOLCANO:
        return _count(limits, names.VOLCANO_MEMORY) * sharing.factor * MIB
    if sharing.dialect is Dialect.HAMI:
        return _count(limits, names.HAMI_MEMORY) * MIB
    return 0


def card_count(sharing: Sharing, limits: Mapping[str, str]) -> int:
    """
    Return how many cards, or shares of different cards, a container counts.
    """
    if sharing.dialect is Dialect.VOLCANO:
        return _count(limits, names.VOLCANO_NUMBER)
    return sum(_count(limits, resource) for resource in COUNTED)


def instance_counts(limits: Mapping[str, str]) -> dict[str, int]:
    """
    Return how many MIG instances of which profile a container asks for.
    """
    prefix = names.NVIDIA_MIG_PREFIX
    return {
        resource.removeprefix(prefix): _count(limits, resource)
        for resource in limits
        if resource.startswith(prefix)
    }


def _count(limits: Mapping[str, str], resource: str) -> int:
    return read_count(limits.get(resource, "0"), resource)
