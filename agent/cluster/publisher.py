"""
The Node's `gpufence.io/cards`: written where it says something else, again and again until it does.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING

from agent.cluster.keep import keep_node
from agent.cluster.units import differ, reckon
from gpufence import names
from gpufence.cards import write_cards
from gpufence.errors import GpufenceError
from gpufence.nodes import stated_cards
from kube import PatchType, core

if TYPE_CHECKING:
    from agent.cluster.settings import ClusterSettings
    from agent.cluster.watches import Watches
    from gpufence.cards import NodeCards
    from kube import Client

_log = logging.getLogger(__name__)


class Publisher:
    """
    Wakes up when the cards or the Node change; whoever edits the annotation finds it put right.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._stop = threading.Event()
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self.seen: NodeCards | None = None
        self.published = False

    def wake(self) -> None:
        self._news.set()

    def publish(self, cards: NodeCards) -> None:
        if differ(self.seen, cards):
            self.seen = cards
            self._news.set()

    def start(self, client: Client, watches: Watches) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(client, watches), name="publisher", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def _run(self, client: Client, watches: Watches) -> None:
        failures = 0
        while not self._stop.is_set():
            self._news.wait()
            self._news.clear()
            if self._stop.is_set():
                return
            try:
                wrote = self._round(client, watches)
            except GpufenceError as error:
                failures += 1
                self._news.set()
                pause = self._settings.backoff.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
                _log.warning("%s; writing the node's cards again in %.1f s", error, pause)
                self._stop.wait(pause)
            else:
                failures = 0
                if wrote:
                    self._stop.wait(self._settings.publish_pause_seconds)

    def _round(self, client: Client, watches: Watches) -> bool:
        """
        Write if need be; tell whether that was so.
        """
        if self.seen is None or not watches.nodes.known:
            return False  # the watch wakes us up once it knows the Node
        wanted = reckon(self.seen, watches.node, self._settings.units).said
        if not differ(stated_cards(watches.node), wanted):
            self.published = True
            return False
        self.published = False
        _log.info("writing the node's cards: %d of them", len(wanted.cards))
        answer = client.patch(
            core("nodes", self._settings.node),
            {"metadata": {"annotations": {names.CARDS: write_cards(wanted)}}},
            PatchType.MERGE,
            timeout_seconds=self._settings.request_seconds,
        )
        watches.nodes.apply("MODIFIED", keep_node(answer))
        return True
