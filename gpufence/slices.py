"""The cards of a node as its DRA driver publishes them in ResourceSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence.cards import Card, Instance, read_capability
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import GpufenceError
from gpufence.names import DRA_DRIVER, DRA_MEMORIES
from gpufence.quantity import read_bytes
from gpufence.shape import Object, as_integer, as_object, as_text, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TEXT, _VERSION, _NUMBER = "string", "version", "int"


class PublishedCards(NamedTuple):
    """
    What one ResourceSlice says: whose cards, of which pool and generation, by driver/pool/device.

    `least_bytes` is what a claim without an amount consumes of a card at least, None where none of
    them is shared.
    """

    node: str
    pool: str
    generation: int
    cards: Mapping[str, Card]
    least_bytes: int | None = None


def cards_of(slices: Iterable[Object]) -> dict[str, Card]:
    """
    Return the cards that slices of one node list; what cannot be read counts as not there, and
    costs no other its place.
    """
    return newest([read for item in slices if (read := read_slice(item)) is not None])


def newest(slices: Iterable[PublishedCards]) -> dict[str, Card]:
    """Return the cards of slices that were read; of each pool the newest generation counts."""
    found: dict[str, tuple[int, dict[str, Card]]] = {}
    for _, pool, generation, cards, _ in slices:
        known, before = found.get(pool, (generation, {}))
        if generation >= known:
            found[pool] = generation, {**(before if generation == known else {}), **cards}
    return {name: card for _, cards in found.values() for name, card in cards.items()}


def read_slice(item: Object) -> PublishedCards | None:
    """Read one slice; None for another driver's, and for what cannot be read."""
    try:
        return _read(item)
    except GpufenceError:
        return None


def _read(item: Object) -> PublishedCards | None:
    spec = as_object(item.get("spec"), "spec")
    if spec.get("driver") != DRA_DRIVER:
        return None
    pool = as_object(spec.get("pool"), "spec.pool")
    name = as_text(pool.get("name"), "spec.pool.name")
    generation = as_integer(pool.get("generation", 0), "spec.pool.generation")
    cards = {}
    least = []
    for place, device in enumerate(objects(spec.get("devices"), "spec.devices")):
        called = f"{DRA_DRIVER}/{name}/{as_text(device.get('name'), 'spec.devices.name')}"
        card = _card(device, place, called)
        if card is not None:
            cards[called] = card
            if device.get("allowMultipleAllocations") is True:
                least.append(_by_policy(device, card))
    node = as_text(spec.get("nodeName"), "spec.nodeName")
    return PublishedCards(node, name, generation, cards, min(least, default=None))


def _by_policy(device: Object, card: Card) -> int:
    """
    Return what a claim gets of a shared card that says no amount: all of it where no policy does.
    """
    field = "spec.devices.capacity.requestPolicy"
    policy = as_object(_memory(device).get("requestPolicy"), field)
    try:
        return min(read_bytes(policy["default"], f"{field}.default"), card.memory_bytes)
    except (GpufenceError, KeyError):
        return card.memory_bytes


def _card(device: Object, place: int, called: str) -> Card | None:
    """
    Read a card; one that has no UUID yet, as an instance that is cut when a claim gets it, is known
    by what claims call it.
    """
    field = "spec.devices"
    uuid = _attribute(device, "uuid", _TEXT) or called
    try:
        memory = read_bytes(_memory(device).get("value"), f"{field}.capacity.value")
        index = as_integer(_value(device, "index", _NUMBER, place), f"{field}.index")
    except GpufenceError:
        return None
    if not 0 < memory <= LARGEST_CARD:
        return None
    mig = None
    if _attribute(device, "type", _TEXT) == "mig":
        parent = _attribute(device, "parentUUID", _TEXT)
        mig = Instance(parent, _attribute(device, "profile", _TEXT))
    version = _attribute(device, "cudaComputeCapability", _VERSION)
    return Card(
        uuid=uuid,
        index=index,
        model=_attribute(device, "productName", _TEXT),
        memory_bytes=memory,
        compute_capability=read_capability(".".join(version.split(".")[:2])),
        mig=mig,
    )


def _memory(device: Object) -> Object:
    """Return what a device says of its memory, by either of the names that capacity may go by."""
    field = "spec.devices.capacity"
    capacity = as_object(device.get("capacity"), field)
    key = next((key for key in DRA_MEMORIES if key in capacity), "")
    return as_object(capacity.get(key), f"{field}.{key}")


def _attribute(device: Object, name: str, kind: str) -> str:
    found = _value(device, name, kind, "")
    return found if isinstance(found, str) else ""


def _value(device: Object, name: str, kind: str, default: object) -> object:
    """Return an attribute, with the driver's name in front of it or without."""
    attributes = as_object(device.get("attributes"), "spec.devices.attributes")
    item = attributes.get(name, attributes.get(f"{DRA_DRIVER}/{name}"))
    return as_object(item, f"spec.devices.attributes.{name}").get(kind, default)
