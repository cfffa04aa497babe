"""
What this Node says of its cards, and what the numbers on its pods mean: its own figures beside the
cards that NVML sees.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.cards import NodeCards
from gpufence.dialects import Units, gpushare, volcano
from gpufence.nodes import node_figures, stated_cards, units_of
from gpufence.shape import Object, as_object, as_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.cluster.watched_cluster import WatchedCluster
    from gpufence.cards import Card
    from kube import JsonObject


class NodeReport(NamedTuple):
    """What the Node is to say, and the units that follow, the same for the webhook and for us."""

    cards: NodeCards
    units: Units


class NodeView:
    """The Node as last watched beside the cards as last measured; worked out once for both."""

    def __init__(self, cluster: WatchedCluster, defaults: Units) -> None:
        self._cluster = cluster
        self._defaults = defaults
        self._lock = threading.Lock()
        self._measured: NodeCards | None = None
        self._reported: tuple[NodeCards, JsonObject, NodeReport] | None = None

    def measured(self, cards: NodeCards) -> bool:
        """Take the cards as they are now; return whether that is something else than before."""
        if not differ(self._measured, cards):
            return False
        self._measured = cards
        return True

    def report(self) -> NodeReport | None:
        """
        Return the report of this moment, the same one until Node or cards change; None before the
        cards have been measured.
        """
        with self._lock:
            measured, node, known = self._measured, self._cluster.node, self._reported
            if measured is None:
                return None
            if known is None or known[0] is not measured or known[1] is not node:
                known = (measured, node, report_of(measured, node, self._defaults))
                self._reported = known
            return known[2]


def report_of(measured: NodeCards, node: Object, defaults: Units) -> NodeReport:
    """
    Work out the units of this node's resources.

    A resource that the node does not offer at the moment, because its device plugin is down, keeps
    the unit that was found before: its pods still run, and a guess is off by a factor of 1024.
    """
    figures = node_figures(node)
    before = _same_cards(measured, stated_cards(node))
    unit = _gpushare(figures, measured.cards, before)
    cards = NodeCards(
        driver=measured.driver,
        observed=measured.observed,
        cards=measured.cards,
        units=() if unit is None else ((names.GPUSHARE_MEMORY, unit),),
        factor=_volcano(figures, measured.cards, before),
    )
    metadata = as_object(node.get("metadata"), "metadata")
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    return NodeReport(cards, units_of(cards, figures, cards.cards, labels, defaults))


def differ(published: NodeCards | None, wanted: NodeCards) -> bool:
    """Return whether the Node says something else, the time of the observation left aside."""
    return published is None or published._replace(observed=wanted.observed) != wanted


def _same_cards(measured: NodeCards, before: NodeCards | None) -> NodeCards | None:
    if before is None or {(card.uuid, card.memory_bytes) for card in before.cards}.isdisjoint(
        (card.uuid, card.memory_bytes) for card in measured.cards
    ):
        return None
    return before


def _gpushare(
    figures: Mapping[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> str | None:
    if names.GPUSHARE_MEMORY not in figures:
        return None if before is None else dict(before.units).get(names.GPUSHARE_MEMORY)
    return gpushare.unit_of(figures, cards)


def _volcano(
    figures: Mapping[str, int], cards: tuple[Card, ...], before: NodeCards | None
) -> int | None:
    if names.VOLCANO_MEMORY not in figures:
        return None if before is None else before.factor
    return volcano.factor_of(figures, cards)
