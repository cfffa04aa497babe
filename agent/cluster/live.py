"""
The real cluster behind `agent.ports.ClusterPort`.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Final

from agent.cluster.acts import Acts, Clients
from agent.cluster.identity import REMEDY, find_identity
from agent.cluster.picture import Picture, Sources
from agent.cluster.publisher import Publisher
from agent.cluster.watches import Watches
from agent.cluster.writer import Writer
from agent.model.decision import Action, ActResult, Answer
from agent.model.state import ClusterStatus, Identity
from kube import ForbiddenError, KubeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.cluster.keep import Words
    from agent.cluster.settings import ClusterSettings
    from agent.events import EventCreate, EventPatch
    from agent.model.decision import Verdict
    from agent.model.pod import PodsOnNode
    from agent.pod_view import PodContext
    from gpufence.cards import NodeCards
    from gpufence.mode import Mode
    from kube import Client

_log = logging.getLogger(__name__)
_NOBODY: Final[Mapping[str, Words]] = {}


class AgentCluster:
    """
    Watches, writes and evicts; `client` speaks as the agent's own account.
    """

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._stop = threading.Event()
        self._identity = Identity.UNKNOWN
        self._acting: Client | None = None
        self._trouble = ""
        self._publisher = Publisher(settings)
        self._writer = Writer(settings)
        self._watches = Watches(settings, self._publisher.wake)
        self._picture = Picture(settings)
        self._acts = Acts(settings, self._ground)
        self._thread = threading.Thread(target=self._begin, name="identity", daemon=True)

    def start(self) -> None:
        """
        Begin to watch, publish and write on threads of our own; returns at once.
        """
        self._watches.start_own(self._client)
        self._thread.start()

    def close(self) -> None:
        """
        End all threads, within a few seconds; Events that wait get their last chance.
        """
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(self._settings.close_seconds)
        self._publisher.stop()
        self._writer.stop()
        self._watches.stop()
        self._client.close()

    def status(self) -> ClusterStatus:
        trust = self._watches.trust()
        return ClusterStatus(
            synced=trust.synced,
            fresh=trust.fresh,
            silence_seconds=trust.silence_seconds,
            highest=self._watches.highest,
            identity=self._identity,
            published=self._publisher.published,
            events_written=self._writer.written,
            events_dropped=self._writer.dropped,
            events_refused=self._writer.refused,
            trouble=self._trouble or trust.trouble,
        )

    def pods(self) -> PodsOnNode:
        return self._picture.pods(self._sources(), fresh=self._watches.trust().fresh)

    def publish(self, cards: NodeCards) -> None:
        self._publisher.publish(cards)

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        self._writer.write(writes)

    def carry_out(self, verdict: Verdict) -> ActResult:
        if verdict.action in {None, Action.KILL}:
            raise ValueError(f"{verdict.action} is no act of the API server's")
        if self._acting is None:
            return ActResult(Answer.FAILED, detail="it is not known yet as whom to act")
        return self._acts.carry_out(verdict, Clients(self._client, self._acting))

    def _sources(self) -> Sources:
        """
        Put together what is known; nobody is fenced before the last part of it, or a pod would be
        held to a limit in the wrong unit, or be told that it has none.
        """
        watches, seen = self._watches, self._publisher.seen
        return Sources(
            pods=watches.pods,
            namespaces=watches.namespaces if watches.complete and seen is not None else _NOBODY,
            node=watches.node,
            highest=watches.highest,
            seen=seen,
        )

    def _ground(self, words: Words, highest: Mode) -> PodContext:
        return self._picture.ground(words, highest, self._sources())

    def _begin(self) -> None:
        """
        Find out as whom to act, however long that takes, and start all that needs to know.
        """
        failures = 0
        while not self._stop.is_set():
            try:
                self._identity, acting = find_identity(self._client, self._settings)
            except KubeError as error:
                failures += 1
                remedy = f"; {REMEDY}" if isinstance(error, ForbiddenError) else ""
                self._trouble = f"{error}{remedy}"
                pause = self._settings.backoff.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
                _log.warning("%s; asking again in %.1f s", self._trouble, pause)
                self._stop.wait(pause)
            else:
                self._trouble = ""
                _log.info("acting on pods of node %s: %s", self._settings.node, self._identity)
                self._acting = acting
                self._watches.start_node(acting)
                self._publisher.start(acting, self._watches)
                self._writer.start(acting)
                return
