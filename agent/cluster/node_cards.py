"""
What this Node says of its cards, and what the numbers on its pods mean: its own figures beside the
cards that NVML sees.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from agent.cluster.filter import filter_node
from gpufence import names
from gpufence.cards import NodeCards, write_cards
from gpufence.dialects import Units, gpushare, volcano
from gpufence.nodes import node_figures, stated_cards, units_of
from gpufence.shape import Object, as_object, as_texts
from kube import PatchType, core
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.cluster.settings import ClusterSettings
    from agent.cluster.watched_cluster import WatchedCluster
    from gpufence.cards import Card
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)


class NodeReport(NamedTuple):
    """What the Node is to say, and the units that follow, the same for the webhook and for us."""

    cards: NodeCards
    units: Units


class NodeCardsWriter:
    """
    The Node as last watched beside the cards as last measured. Its `gpufence.io/cards` is written
    where it says something else, again and again until it does; to be woken when the Node changes.
    """

    def __init__(self, client: Client, settings: ClusterSettings, cluster: WatchedCluster) -> None:
        self._client = client
        self._settings = settings
        self._cluster = cluster
        self._due = 0.0
        self._lock = threading.Lock()
        self._measured: NodeCards | None = None
        self._reported: tuple[NodeCards, JsonObject, NodeReport] | None = None
        self._repeating = Repeating("the node's cards", self._turn, backoff=settings.backoff)
        self.published = False

    def start(self) -> None:
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop(self._settings.close_seconds)

    def wake(self) -> None:
        self._repeating.wake()

    def publish(self, cards: NodeCards) -> None:
        """Have the Node say which cards it has; repeated until it does."""
        if differ(self._measured, cards):
            self._measured = cards
            self.wake()

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
                known = (measured, node, report_of(measured, node, self._settings.units))
                self._reported = known
            return known[2]

    def _turn(self) -> float:
        """Write if need be; return how long to pause."""
        report = self.report()
        if report is None or not self._cluster.nodes.known:
            return math.inf
        if not differ(stated_cards(self._cluster.node), report.cards):
            self.published = True
            return math.inf
        self.published = False
        pause = self._due - time.monotonic()
        if pause > 0:  # somebody else writes it too, and neither gives in
            return pause
        _log.info("writing the node's cards: %d of them", len(report.cards.cards))
        answer = self._client.patch(
            core("nodes", self._settings.node),
            {"metadata": {"annotations": {names.CARDS: write_cards(report.cards)}}},
            PatchType.MERGE,
            timeout_seconds=self._settings.request_seconds,
        )
        self._due = time.monotonic() + self._settings.publish_pause_seconds
        self._cluster.nodes.apply("MODIFIED", filter_node(answer))
        return math.inf


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
