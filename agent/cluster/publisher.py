"""
The Node's `gpufence.io/cards`: written where it says something else, again and again until it does.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING

from agent.cluster.filter import filter_node
from agent.cluster.node_view import differ
from gpufence import names
from gpufence.cards import write_cards
from gpufence.errors import GpufenceError
from gpufence.nodes import stated_cards
from kube import PatchType, core

if TYPE_CHECKING:
    from agent.cluster.node_view import NodeView
    from agent.cluster.settings import ClusterSettings
    from agent.cluster.watches import Watches
    from kube import Client

_log = logging.getLogger(__name__)


class Publisher:
    """
    Wakes up when the cards or the Node have `changed`; whoever edits the annotation finds it put
    right.
    """

    def __init__(
        self, settings: ClusterSettings, watches: Watches, view: NodeView, changed: threading.Event
    ) -> None:
        self._settings = settings
        self._watches = watches
        self._view = view
        self._changed = changed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.published = False

    def start(self, client: Client) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(client,), name="publisher", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def _run(self, client: Client) -> None:
        failures = 0
        while not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            if self._stop.is_set():
                return
            try:
                wrote = self._round(client)
            except GpufenceError as error:
                failures += 1
                self._changed.set()
                pause = self._settings.backoff.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
                _log.warning("%s; writing the node's cards again in %.1f s", error, pause)
                self._stop.wait(pause)
            else:
                failures = 0
                if wrote:
                    self._stop.wait(self._settings.publish_pause_seconds)

    def _round(self, client: Client) -> bool:
        """Write if need be; return whether that was so."""
        report = self._view.report()
        if report is None or not self._watches.nodes.known:
            return False  # the watch wakes us up once it knows the Node
        if not differ(stated_cards(self._watches.node), report.cards):
            self.published = True
            return False
        self.published = False
        _log.info("writing the node's cards: %d of them", len(report.cards.cards))
        answer = client.patch(
            core("nodes", self._settings.node),
            {"metadata": {"annotations": {names.CARDS: write_cards(report.cards)}}},
            PatchType.MERGE,
            timeout_seconds=self._settings.request_seconds,
        )
        self._watches.nodes.apply("MODIFIED", filter_node(answer))
        return True
