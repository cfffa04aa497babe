"""
PURE. gpushare's books of a node: which pod has how many units of which card, as annotations say.

They tell what pods asked for, never what they hold.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpufence.names import (
    GPUSHARE_ALLOCATION,
    GPUSHARE_CARD_INDEX,
    GPUSHARE_COUNT,
    GPUSHARE_MEMORY,
)
from gpufence.quantity import LARGEST, NANO, read_nano
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.text import printable
from kubectl_gpufence.pods import annotations_of, name_of, node_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PENDING: Final = -1
"""The card of a pod whose card nobody knows yet."""

_NO_ADDRESS = "unknown"
_MOST_GIB = 100  # of one card; who counts more of them counts MiB
_LEAST = -LARGEST - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Booking:
    """
    A living pod with gpu-mem: `shares` by card; `spread` where an annotation tells all of them.
    """

    uid: str
    namespace: str
    name: str
    node: str
    units: int
    shares: Mapping[int, int]
    spread: bool

    def on(self, card: int, cards: int) -> int:
        """
        Return what the column of a card shows; behind the node's cards there is that of PENDING.
        """
        if self.spread:
            return self.shares.get(card, 0)
        mine = card in self.shares or (card == cards and PENDING in self.shares)
        return self.units if mine else 0


@dataclass(frozen=True, slots=True)
class NodeBook:
    """
    A node's cards, taken for equally large, and its pods; `total` and shares are in its units.
    """

    name: str
    address: str
    cards: int
    total: int
    bookings: tuple[Booking, ...] = ()

    @property
    def shares(self) -> dict[int, int]:
        """
        Return the units booked by card, those of cards that are not there and PENDING among them.
        """
        booked: dict[int, int] = {}
        for booking in self.bookings if self.total > 0 else ():
            for card, units in booking.shares.items():
                booked[card] = booked.get(card, 0) + units
        return booked

    @property
    def pending(self) -> bool:
        return PENDING in self.shares

    @property
    def card_units(self) -> int:
        return self.total // self.cards if self.cards else 0

    def by_card(self) -> list[Booking]:
        """Return each pod once, at the first of its cards; pending ones last."""
        order = sorted(self.shares, key=lambda card: (card < 0, card))
        met = {
            booking.uid: booking
            for card in order
            for booking in self.bookings
            if card in booking.shares
        }
        return list(met.values())


def read_book(raw: Object) -> NodeBook:
    """
    Read what a Node offers.

    Raises:
        InvalidError: it is no node.
    """
    status = as_object(raw.get("status"), "status")
    offers = as_object(status.get("allocatable"), "status.allocatable")
    addresses = objects(status.get("addresses"), "status.addresses")
    internal = (item for item in addresses if item.get("type") == "InternalIP")
    address = next((as_text(item.get("address"), "address") for item in internal), _NO_ADDRESS)
    cards, total = _units(offers, GPUSHARE_COUNT), _units(offers, GPUSHARE_MEMORY)
    return NodeBook(name_of(raw), printable(address), cards, total)


def read_booking(raw: Object) -> Booking | None:
    """
    Read a pod; None where it asks for no gpu-mem.

    Raises:
        InvalidError: it is no pod.
    """
    metadata, spec = as_object(raw.get("metadata"), "metadata"), as_object(raw.get("spec"), "spec")
    units = 0
    for container in objects(spec.get("containers"), "spec.containers"):
        resources = as_object(container.get("resources"), "resources")
        units += _units(as_object(resources.get("limits"), "resources.limits"), GPUSHARE_MEMORY)
    if units <= 0:
        return None
    annotations = annotations_of(raw)
    spread = _allocation(annotations.get(GPUSHARE_ALLOCATION, ""))
    card = _integer(annotations.get(GPUSHARE_CARD_INDEX, ""))
    return Booking(
        uid=as_text(metadata.get("uid"), "metadata.uid"),
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        name=name_of(raw),
        node=node_of(raw),
        units=units,
        shares=spread or {PENDING if card is None else card: units},
        spread=bool(spread),
    )


def with_bookings(books: Iterable[NodeBook], bookings: Iterable[Booking]) -> list[NodeBook]:
    """Enter each pod in the book of its node; what has no such node is left out."""
    by_node: dict[str, list[Booking]] = {}
    for booking in bookings:
        by_node.setdefault(booking.node, []).append(booking)
    return [replace(book, bookings=tuple(by_node.get(book.name, ()))) for book in books]


def unit_of(books: Iterable[NodeBook]) -> str:
    """Guess the unit of a cluster by the first of its cards; empty where there is none."""
    for book in books:
        if book.total > 0 and book.cards:
            return "MiB" if book.card_units > _MOST_GIB else "GiB"
    return ""


def _units(amounts: Object, resource: str) -> int:
    if resource not in amounts:
        return 0
    return -(-read_nano(amounts[resource], resource) // NANO)


def _allocation(text: str) -> dict[int, int]:
    """
    Read the units by card of all containers; nothing where any of it is not as it should be. Of a
    container that is written twice the last counts, as in Go, but each has to be readable.
    """
    try:
        written = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return {}
    by_container: dict[int, Mapping[str, int]] = {}
    for key, cards in written if isinstance(written, tuple) else ():
        container, amounts = _integer(key), _amounts(cards)
        if container is None or amounts is None:
            return {}
        by_container[container] = amounts
    booked: dict[int, int] = {}
    for each in by_container.values():
        for key, units in each.items():
            card = _integer(key)
            if card is None:
                return {}
            booked[card] = booked.get(card, 0) + units
    return booked


def _amounts(cards: object) -> dict[str, int] | None:
    """Read the units of one container; null has none."""
    if not isinstance(cards, tuple | None):
        return None
    found: dict[str, int] = {}
    for key, units in cards or ():
        amount = _amount(units)
        if amount is None:
            return None
        found[key] = amount
    return found


def _amount(units: object) -> int | None:
    """Read a whole number as Go does: null is zero, true is none."""
    if units is None:
        return 0
    if isinstance(units, bool) or not isinstance(units, int):
        return None
    return units if _LEAST <= units <= LARGEST else None


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else LARGEST + 1
    return number if _LEAST <= number <= LARGEST else None
