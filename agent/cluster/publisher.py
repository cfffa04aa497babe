"""
The Node's `gpufence.io/cards`: written where it says something else, again and again until it does.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING

from agent.cluster.node_view import differ
from gpufence import names
from gpufence.cards import write_cards
from gpufence.nodes import stated_cards
from kube import PatchType, core
from kube.repeating import Repeating

if TYPE_CHECKING:
    from agent.cluster.node_view import NodeView
    from agent.cluster.settings import ClusterSettings
    from agent.cluster.watched_cluster import WatchedCluster
    from gpufence.cards import NodeCards
    from kube import Client

_log = logging.getLogger(__name__)


class Publisher:
    """To be woken when the cards or the Node have changed; an edited annotation is put right."""

    def __init__(
        self, client: Client, settings: ClusterSettings, cluster: WatchedCluster, view: NodeView
    ) -> None:
        self._client = client
        self._settings = settings
        self._cluster = cluster
        self._view = view
        self._due = 0.0
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
        if self._view.measured(cards):
            self.wake()

    def _turn(self) -> float:
        """Write if need be; return how long to pause."""
        report = self._view.report()
        if report is None or not self._cluster.node_known:
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
        self._cluster.node_written(answer)
        return math.inf
