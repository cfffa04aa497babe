"""
What a node says about its cards and units, and which of its cards a pod may meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.cards import Card, Instance, NodeCards, read_cards
from gpufence.dialects import NODE_RESOURCES, PREFIXES, Units
from gpufence.errors import GpufenceError, InvalidError
from gpufence.quantity import GIB, MIB, UNIT_BYTES, read_count
from gpufence.shape import Object, as_object, as_text, as_texts, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLERANCE_PERCENT = 2


class GpuNode(NamedTuple):
    """
    A node as far as its GPUs go; no cards means that nothing tells their size.
    """

    name: str
    labels: Mapping[str, str]
    resources: frozenset[str]
    cards: tuple[Card, ...]
    units: Units


def read_node(node: Object, defaults: Units) -> GpuNode | None:
    """
    Read a Node, or return None for one that offers no GPU resource.

    `defaults` are the operator's settings, for units that the node leaves open. What cannot be read
    counts as not said: a broken label on one node must not stop admission for all.
    """
    metadata = as_object(node.get("metadata"), "metadata")
    status = as_object(node.get("status"), "status")
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    annotations = as_object(metadata.get("annotations"), "metadata.annotations")
    offered = _offered(as_object(status.get("allocatable"), "status.allocatable"))
    if not offered:
        return None
    # A broken device leaves allocatable, not capacity, and the unit does not change with it.
    figures = offered | _offered(as_object(status.get("capacity"), "status.capacity"))
    said = _said(annotations.get(names.CARDS))
    cards = said.cards if said is not None and said.cards else _by_labels(labels)
    return GpuNode(
        name=as_text(metadata.get("name"), "metadata.name"),
        labels=labels,
        resources=frozenset(offered),
        cards=cards,
        units=_units(said, figures, cards, labels, defaults),
    )


def usable_cards(node: GpuNode, profile: str = "", index: int | None = None) -> tuple[Card, ...]:
    """
    Return the cards a pod may meet there: its MIG profile's instances, or whole cards, and only the
    assigned one where a scheduler has said which.

    Where every card is cut, whoever asks for a card gets an instance (the device plugin's MIG
    strategy "single"). Resource names say `1g.10gb.me` where the driver says `1g.10gb+me`.
    """
    instances = tuple(card for card in node.cards if card.mig)
    if profile:
        return tuple(
            card for card in instances if card.mig and card.mig.profile.replace("+", ".") == profile
        )
    parents = {card.mig.parent for card in instances if card.mig}
    whole = tuple(card for card in node.cards if not card.mig and card.uuid not in parents)
    assigned = tuple(card for card in whole if card.index == index)
    return assigned or whole or instances


def gpushare_unit(units: int, count: int, cards: tuple[Card, ...]) -> str | None:
    """
    Tell gpushare's unit from what a node offers and what its cards hold; None where both or neither
    fit, since a wrong guess is off by a factor of 1024.

    The device plugin gives all cards the size of the first and writes whole GiB rounded down.
    """
    each = units // max(count, 1)
    sizes = [card.memory_bytes for card in cards if card.mig is None]
    gib = any(abs(each - size // GIB) <= 1 for size in sizes)
    mib = any(_near(each, size // MIB) for size in sizes)
    return None if gib == mib else "GiB" if gib else "MiB"


def volcano_factor(units: int, cards: tuple[Card, ...]) -> int | None:
    """
    Tell the factor of Volcano's device plugin from what a node offers; None where nothing fits.
    """
    whole = [card.memory_bytes // MIB for card in cards if card.mig is None]
    if not whole or units < len(whole):
        return None
    factor = max(round(whole[0] * len(whole) / units), 1)
    return factor if _near(units, whole[0] // factor * len(whole)) else None


def _near(value: int, wanted: int) -> bool:
    return abs(value - wanted) * 100 <= wanted * _TOLERANCE_PERCENT


def _offered(allocatable: Object) -> dict[str, int]:
    offered = {}
    for resource, value in allocatable.items():
        if resource in NODE_RESOURCES or resource.startswith(PREFIXES):
            try:
                count = read_count(value, resource)
            except InvalidError:
                continue
            if count:
                offered[resource] = count
    return offered


def _said(annotation: object) -> NodeCards | None:
    try:
        return read_cards(annotation) if isinstance(annotation, str) else None
    except GpufenceError:
        return None


def _by_labels(labels: Mapping[str, str]) -> tuple[Card, ...]:
    """
    Make cards of GPU feature discovery's labels, which describe all of a node's cards as equal.
    """
    memory = _label(labels, names.GFD_MEMORY)
    model = labels.get(names.GFD_PRODUCT, "").removesuffix("-SHARED")
    major, minor = (
        _label(labels, names.GFD_COMPUTE_MAJOR),
        _label(labels, names.GFD_COMPUTE_MINOR, least=0),
    )
    capability = (major, minor) if major is not None and minor is not None else None
    count = _label(labels, names.GFD_COUNT) or 1
    cards = [
        Card(f"{index}", index, model, memory * MIB, capability)
        for index in range(min(count, 64) if memory else 0)
        if memory
    ]
    before, after = names.GFD_MIG_MEMORY.split("{profile}")
    for key in sorted(labels):
        if key.startswith(before) and key.endswith(after):
            profile = key.removeprefix(before).removesuffix(after)
            slice_memory = _label(labels, key)
            if slice_memory:
                mig = Instance("", profile)
                cards.append(Card(key, 0, model, slice_memory * MIB, capability, mig))
    return tuple(cards)


def _label(labels: Mapping[str, str], key: str, *, least: int = 1) -> int | None:
    try:
        return whole_number(labels.get(key, ""), key, least=least)
    except InvalidError:
        return None


def _units(
    said: NodeCards | None,
    figures: Mapping[str, int],
    cards: tuple[Card, ...],
    labels: Mapping[str, str],
    defaults: Units,
) -> Units:
    clients, strategy = _sharing(labels)
    factor = said.factor if said is not None else None
    if factor is None and names.VOLCANO_MEMORY in figures:
        factor = volcano_factor(figures[names.VOLCANO_MEMORY], cards)
    return Units(
        gpushare_bytes=_gpushare_bytes(said, figures, cards, defaults),
        volcano_factor=factor or defaults.volcano_factor,
        clients=clients or defaults.clients,
        driver_caps=strategy == "mps",
    )


def _gpushare_bytes(
    said: NodeCards | None, figures: Mapping[str, int], cards: tuple[Card, ...], defaults: Units
) -> int | None:
    unit = dict(said.units).get(names.GPUSHARE_MEMORY) if said is not None else None
    if unit is None and names.GPUSHARE_MEMORY in figures and cards:
        whole = sum(1 for card in cards if card.mig is None)
        count = figures.get(names.GPUSHARE_COUNT, whole)
        unit = gpushare_unit(figures[names.GPUSHARE_MEMORY], count, cards)
        return UNIT_BYTES.get(unit) if unit is not None else None
    return UNIT_BYTES.get(unit) if unit is not None else defaults.gpushare_bytes


def _sharing(labels: Mapping[str, str]) -> tuple[int | None, str]:
    """
    Return how many pods share a card there and by what means, as GKE or the device plugin say it.
    """
    clients = _label(labels, names.GKE_CLIENTS)
    strategy = labels.get(names.GKE_SHARING, labels.get(names.GFD_SHARING, ""))
    return clients or _label(labels, names.GFD_REPLICAS), strategy.lower().replace("_", "-")
