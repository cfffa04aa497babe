"""
PURE. gpushare's books of a node, and the two tables of `kubectl inspect gpushare`.

Books say which pod has how many units of which card, as annotations say: what pods asked for, never
what they hold. `Holdings` adds the column `Used`.

The tables are aligned by the rules of Go's text/tabwriter (https://pkg.go.dev/text/tabwriter): a
tab ends a cell, lines one below the other that have a cell in a column share its width, and what
stands behind a line's last tab belongs to no column.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpufence.names import GPUSHARE_ALLOCATION, GPUSHARE_CARD_INDEX, GPUSHARE_COUNT, GPUSHARE_MEMORY
from gpufence.quantity import LARGEST, MIB, NANO, UNIT_BYTES, read_nano
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.text import printable
from kubectl_gpufence.cluster_view import is_stale
from kubectl_gpufence.pods import annotations_of, name_of, node_of
from kubectl_gpufence.view import UNKNOWN, total_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpufence.snapshot import Snapshot


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


_PADDING: Final = 2
_SUM: Final = "Allocated/Total GPU Memory In Cluster:"


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the agents that answered have measured, by node."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)

    def on_node(self, node: str) -> int | None:
        """
        Return the bytes that are held on all its cards, by any process; None where that is unknown.
        """
        snapshot = self.snapshots.get(node)
        if snapshot is None or is_stale(snapshot):
            return None
        return total_of([card.used_bytes for card in snapshot.cards])

    def by_pod(self, booking: Booking) -> int | None:
        """
        Return what a pod holds: nothing where its agent, which sees all cards, does not list it.
        """
        if self.on_node(booking.node) is None:
            return None
        pods = self.snapshots[booking.node].pods
        uses = next((pod.uses for pod in pods if pod.uid == booking.uid), ())
        return total_of([use.used_bytes for use in uses], none=0)


def summary(books: Sequence[NodeBook], holdings: Holdings | None = None) -> str:
    """Return a line for each node, the units that are booked and there on each card."""
    unit, pending = unit_of(books), any(book.pending for book in books)
    most = max((book.cards for book in books), default=0)
    sizes = [f"GPU{card}(Allocated/Total)" for card in range(most)]
    waiting = ["PENDING(Allocated)"] if pending else []
    head = ["NAME", "IPADDRESS", *sizes, *waiting, f"GPU Memory({unit})"]
    shown = [book for book in books if book.total > 0]
    rows = []
    for book in shown:
        waiting = [_pending(book)] if pending else []
        cards = [_card(book, card) for card in range(most)]
        total = f"{_on_cards(book, most)}/{book.total}"
        rows.append([book.name, book.address, *cards, *waiting, total])
    if holdings is not None:
        head.append(_used_title(unit))
        for book, row in zip(shown, rows, strict=True):
            row.append(_used(holdings.on_node(book.name), unit))
    lines = ["\t".join(row) + "\n" for row in (head, *rows)]
    ruler = "-" * (len(lines[1].encode()) + 20 if shown else 0)
    used = sum(_on_cards(book, most) for book in shown)
    total_units = sum(book.total for book in shown)
    tail = f"{_SUM}\n{used}/{total_units} ({_percent(used, total_units)}%)\t\n"
    return _aligned(f"{''.join(lines)}{ruler}\n{tail}")


def details(books: Sequence[NodeBook], holdings: Holdings | None = None) -> str:
    """Return for each node a line for each pod, the units that it has of each card."""
    unit, shown = unit_of(books), [book for book in books if book.total > 0]
    ruler, text = 0, ""
    for book in shown:
        rows = "".join(f"{row}\n" for row in _pod_rows(book, holdings, unit))
        ruler = ruler or len(rows.encode()) + 10
        text += f"{_node_head(book, holdings, unit)}{rows}{_node_tail(book, holdings, unit)}"
        text += f"{'-' * ruler}\n"
    used = sum(sum(book.shares.values()) for book in shown)
    total = sum(book.total for book in shown)
    return _aligned(f"{text}\n\n{_SUM}\t{used}/{total} ({_percent(used, total)}%)\t\n")


def _node_head(book: NodeBook, holdings: Holdings | None, unit: str) -> str:
    titles = ["NAME", "NAMESPACE", *(f"GPU{card}(Allocated)" for card in range(book.cards))]
    titles += ["Pending(Allocated)"] if book.pending else []
    titles += [] if holdings is None else [_used_title(unit)]
    columns = "".join(f"{title}\t" for title in titles)
    return f"\nNAME:\t{book.name}\nIPADDRESS:\t{book.address}\n\n{columns}\n"


def _pod_rows(book: NodeBook, holdings: Holdings | None, unit: str) -> Iterator[str]:
    for booking in book.by_card():
        cells = [booking.name, booking.namespace, *_columns(booking, book)]
        if holdings is not None:
            cells.append(_used(holdings.by_pod(booking), unit))
        yield "".join(f"{cell}\t" for cell in cells)


def _columns(booking: Booking, book: NodeBook) -> list[str]:
    columns = book.cards + (1 if book.pending else 0)
    return [str(booking.on(card, book.cards)) for card in range(columns)]


def _node_tail(book: NodeBook, holdings: Holdings | None, unit: str) -> str:
    booked = sum(book.shares.values())
    held = ""
    if holdings is not None:
        held = f"Used :\t{_used(holdings.on_node(book.name), unit)} \t\n"
    allocated = f"Allocated :\t{booked} ({_percent(booked, book.total)}%)\t\n"
    return f"{allocated}{held}Total :\t{book.total} \t\n"


def _card(book: NodeBook, card: int) -> str:
    if card >= book.cards and card not in book.shares:
        return "0/0"
    return f"{book.shares.get(card, 0)}/{book.card_units}"


def _pending(book: NodeBook) -> str:
    return str(book.shares[PENDING]) if book.pending else ""


def _on_cards(book: NodeBook, most: int) -> int:
    """Sum what the columns of the summary show; cards beyond them are left out there."""
    return sum(units for card, units in book.shares.items() if PENDING <= card < most)


def _percent(used: int, total: int) -> int:
    # The product of a float, as there: in integers some shares come out one higher.
    return int(used / total * 100) if total else 0


def _used_title(unit: str) -> str:
    return f"Used({unit or 'MiB'})"


def _used(amount: int | None, unit: str) -> str:
    """Render bytes in the cluster's unit, rounded up: whole MiB, or tenths of a GiB."""
    if amount is None:
        return UNKNOWN
    if UNIT_BYTES.get(unit, MIB) == MIB:
        return str(-(-amount // MIB))
    tenths = -(-amount * 10 // UNIT_BYTES[unit])
    return f"{tenths // 10}.{tenths % 10}"


def _aligned(text: str) -> str:
    """Put two spaces and as many as are needed in place of each tab."""
    lines = [line.split("\t") for line in text.split("\n")]
    widths: list[list[int]] = [[] for _ in lines]
    _measure(lines, widths, 0, len(lines))
    return "\n".join(map(_line, lines, widths))


def _measure(
    lines: Sequence[Sequence[str]], widths: list[list[int]], first: int, behind: int
) -> None:
    """
    Find the width of the next column of each block of these lines, and those to the right of it.
    """
    column = len(widths[first]) if first < behind else 0
    at = first
    while at < behind:
        block = at
        while at < behind and column < len(lines[at]) - 1:
            at += 1
        if block < at:
            width = max(len(cells[column]) for cells in lines[block:at]) + _PADDING
            for wide in widths[block:at]:
                wide.append(width)
            _measure(lines, widths, block, at)
        else:
            at += 1


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
    return "".join(padded) + cells[-1]
