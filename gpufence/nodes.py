"""What a node says about its cards and units."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.card_labels import cards_by_labels
from gpufence.cards import NodeCards, read_cards
from gpufence.dialects import NODE_RESOURCES, PREFIXES, Units, gpushare, volcano
from gpufence.errors import GpufenceError, InvalidError
from gpufence.quantity import UNIT_BYTES, read_count
from gpufence.shape import Object, as_object, as_text, as_texts, whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.cards import Card


class GpuNode(NamedTuple):
    """A node as far as its GPUs go; no cards means that nothing tells their size."""

    name: str
    labels: Mapping[str, str]
    resources: frozenset[str]
    cards: tuple[Card, ...]
    units: Units


def read_node(node: Object, defaults: Units) -> GpuNode | None:
    """
    Read a Node, or return None for one that offers no GPU resource and of whose cards neither its
    agent nor its labels say anything; where devices come by claims (DRA) a node lists no resource,
    and a node that was born a moment ago none yet.

    `defaults` are the operator's settings, for units that the node leaves open. What cannot be read
    counts as not there: a broken label on one node must not stop admission for all.
    """
    return node_stating(node, defaults, stated_cards(node))


def node_stating(node: Object, defaults: Units, stated: NodeCards | None) -> GpuNode | None:
    """Do the same for whoever has read what the Node's own agent wrote."""
    metadata = as_object(node.get("metadata"), "metadata")
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    offered = figures_of(node, "allocatable")
    cards = stated.cards if stated is not None and stated.cards else cards_by_labels(labels)
    if not offered and not cards:
        return None
    return GpuNode(
        name=as_text(metadata.get("name"), "metadata.name"),
        labels=labels,
        resources=frozenset(offered),
        cards=cards,
        units=units_of(stated, node_figures(node), cards, labels, defaults),
    )


def stated_cards(node: Object) -> NodeCards | None:
    """
    Read what the Node's own agent wrote about its cards; None where there is nothing readable.
    """
    try:
        metadata = as_object(node.get("metadata"), "metadata")
        annotations = as_object(metadata.get("annotations"), "metadata.annotations")
        text = annotations.get(names.CARDS)
        return read_cards(text) if isinstance(text, str) else None
    except GpufenceError:
        return None


def node_figures(node: Object) -> dict[str, int]:
    """
    Read how much of each GPU resource a node has.

    Capacity counts before allocatable: a broken device leaves that, and the unit does not change.
    """
    return figures_of(node, "allocatable") | figures_of(node, "capacity")


def figures_of(node: Object, part: str) -> dict[str, int]:
    """Read how much of each GPU resource a node states in a part of its status."""
    status = as_object(node.get("status"), "status")
    offered = {}
    for resource, value in as_object(status.get(part), f"status.{part}").items():
        if resource in NODE_RESOURCES or resource.startswith(PREFIXES):
            try:
                count = read_count(value, resource)
            except InvalidError:
                continue
            if count:
                offered[resource] = count
    return offered


def units_of(
    stated: NodeCards | None,
    figures: Mapping[str, int],
    cards: tuple[Card, ...],
    labels: Mapping[str, str],
    defaults: Units,
) -> Units:
    """
    Return what amounts mean on a node: as its agent states it, else as its figures tell beside
    cards whose size is certain, else as the operator says.
    """
    clients, strategy = _sharing(labels)
    cards = tuple([card for card in cards if card.most_bytes is None])
    factor = stated.factor if stated is not None else None
    return Units(
        gpushare_bytes=_gpushare_bytes(stated, figures, cards, defaults),
        volcano_factor=factor or volcano.factor_of(figures, cards) or defaults.volcano_factor,
        clients=clients or defaults.clients,
        driver_caps=strategy == "mps" or gpushare.is_isolating(labels),
    )


def _label(labels: Mapping[str, str], key: str, *, least: int = 1) -> int | None:
    try:
        return whole_number(labels.get(key, ""), key, least=least)
    except InvalidError:
        return None


def _gpushare_bytes(
    stated: NodeCards | None, figures: Mapping[str, int], cards: tuple[Card, ...], defaults: Units
) -> int | None:
    unit = dict(stated.units).get(names.GPUSHARE_MEMORY) if stated is not None else None
    if unit is not None:
        return UNIT_BYTES.get(unit)
    if names.GPUSHARE_MEMORY in figures and cards:
        unit = gpushare.unit_of(figures, cards)
        return None if unit is None else UNIT_BYTES[unit]
    return defaults.gpushare_bytes


def _sharing(labels: Mapping[str, str]) -> tuple[int | None, str]:
    """
    Return how many pods share a card there and by what means, as GKE or the device plugin say it.
    """
    clients = _label(labels, names.GKE_CLIENTS)
    strategy = labels.get(names.GKE_SHARING, labels.get(names.GFD_SHARING, ""))
    return clients or _label(labels, names.GFD_REPLICAS), strategy.lower().replace("_", "-")
