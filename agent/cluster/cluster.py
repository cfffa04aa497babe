"""The agent's part that speaks with the API server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from agent.cluster.acts import Acts, Clients
from agent.cluster.claims import ClaimReader
from agent.cluster.node_cards import NodeCardsWriter
from agent.cluster.pod_index import PodIndex, Sources
from agent.cluster.settings import COMPONENT, Impersonation
from agent.cluster.watched_cluster import WatchedCluster
from agent.events.episodes import EventCreate, is_urgent
from agent.model.decision import Action, ActResult, Answer
from agent.model.state import ClusterStatus, Identity
from kube import ForbiddenError, core
from kube.event_writer import EventWriter
from kube.events import EventText, Reporter
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent.cluster.settings import ClusterSettings
    from agent.events.episodes import EventPatch
    from agent.fence import PodContext
    from agent.model.decision import Verdict
    from agent.model.pod import PodsOnNode
    from gpufence.cards import NodeCards
    from gpufence.mode import Mode
    from kube import Client
    from kube.informers.views import NamespaceView

_log = logging.getLogger(__name__)
_NO_NAMESPACES: Final[Mapping[str, NamespaceView]] = {}

REMEDY = (
    "apply deploy/base on Kubernetes 1.36 and later, deploy/overlays/kubernetes-1.30 on an older "
    "one, and check GPUFENCE_NODE and GPUFENCE_IMPERSONATION"
)


class AgentCluster:
    """
    Watches, writes and evicts; `client` speaks as the agent's own account. All but `carry_out`
    returns at once: what it asks for happens on other threads.
    """

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self.client = client
        self.settings = settings
        self._identity = Identity.UNKNOWN
        self._acting: Client | None = None
        self._claims = ClaimReader(settings, lambda: self._view.pods.items)
        self._view = WatchedCluster(
            client, settings, on_pods=self._claims.wake, on_node=self._wake_cards
        )
        self._index = PodIndex(settings)
        self._cards = NodeCardsWriter(client, settings, self._view)
        reporter = Reporter(COMPONENT, settings.node, host=settings.node)
        self._events = EventWriter(reporter, request_seconds=settings.request_seconds)
        self._acts = Acts(settings, self._context, self._claims.of_pod)
        self._waiting: list[Callable[[Client], None]] = [
            self._view.follow_node,
            self._claims.start,
            self._events.start,
        ]
        self._finding = Repeating(
            "identity", self._find_out, forbidden=REMEDY, backoff=settings.backoff
        )

    def when_acting(self, begin: Callable[[Client], None]) -> None:
        """Have this called once it is known as whom to act; to be said before the start."""
        self._waiting.append(begin)

    def start(self) -> None:
        """Begin to watch, publish and write on other threads; returns at once."""
        self._view.start()
        self._cards.start()
        self._finding.start()

    def close(self) -> None:
        """End all threads, within a few seconds; Events that wait get their last chance."""
        self._finding.stop(self.settings.close_seconds)
        self._cards.stop()
        self._events.stop(self.settings.close_seconds)
        self._claims.stop()
        self._view.stop()
        self.client.close()

    def status(self) -> ClusterStatus:
        health = self._view.health()
        return ClusterStatus(
            synced=health.synced,
            fresh=health.fresh,
            silence_seconds=health.silence_seconds,
            highest=self._view.highest,
            identity=self._identity,
            published=self._cards.published,
            events_written=self._events.written,
            events_dropped=self._events.dropped,
            events_refused=self._events.refused,
            trouble=self._finding.trouble or health.trouble,
        )

    def pods(self) -> PodsOnNode:
        """Return the pods of this node as last known; the same object until something changes."""
        return self._index.pods(self._sources(), fresh=self._view.health().fresh)

    def publish(self, cards: NodeCards) -> None:
        """Have the Node say which cards it has; repeated until it does."""
        self._cards.publish(cards)

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        """Have Events written; those that cannot be queued are dropped and counted."""
        for item in writes:
            notice = item.notice
            text = EventText(notice.reason, notice.message)
            times = 1 if isinstance(item, EventCreate) else item.count
            urgent = is_urgent(notice)
            self._events.count(item.serial, notice.regarding, text, times, urgent=urgent)

    def carry_out(self, verdict: Verdict) -> ActResult:
        """
        Ask the API server to make a pod go, after a last look at the pod itself. Blocks; not KILL.
        """
        if verdict.action in {None, Action.KILL}:
            raise ValueError(f"{verdict.action} is no act of the API server's")
        if self._acting is None:
            return ActResult(Answer.FAILED, detail="it is not known yet as whom to act")
        return self._acts.carry_out(verdict, Clients(self.client, self._acting))

    def _sources(self) -> Sources:
        """
        Put together what is known; no pod is fenced before the last part of it, or it would be held
        to a limit in the wrong unit, or be told that it has none.
        """
        view, report = self._view, self._cards.report()
        complete = view.complete and report is not None
        return Sources(
            pods=view.pods.items,
            namespaces=view.namespaces.items if complete else _NO_NAMESPACES,
            highest=view.highest,
            report=report,
            claims=self._claims.known,
        )

    def _context(self, namespace: NamespaceView, highest: Mode) -> PodContext:
        return self._index.context(namespace, highest, self._cards.report())

    def _wake_cards(self) -> None:
        self._cards.wake()

    def _find_out(self) -> float:
        """Find out as whom to act, and start all that needs to know."""
        self._identity, self._acting = find_identity(self.client, self.settings)
        _log.info("acting on pods of node %s: %s", self.settings.node, self._identity)
        for begin in self._waiting:
            begin(self._acting)
        self._finding.end()
        return 0.0


def find_identity(client: Client, settings: ClusterSettings) -> tuple[Identity, Client]:
    """
    Find out who may list the pods of this node, and return a client that speaks so.

    Only a refusal of the node's identity leads to the plain one: that one reaches every node, and
    trouble on the way must not bring it about.

    Raises:
        ForbiddenError: nobody may.
        KubeError: the API server cannot be asked at the moment.
    """
    as_node = client.impersonating(f"system:node:{settings.node}")
    if settings.impersonation is Impersonation.ON:
        return Identity.IMPERSONATING, as_node
    if settings.impersonation is Impersonation.OFF:
        return Identity.PLAIN, client
    try:
        _list_pods(as_node, settings)
    except ForbiddenError as error:
        _log.info("not allowed to act as node %s: %s", settings.node, error)
        _list_pods(client, settings)
        return Identity.PLAIN, client
    return Identity.IMPERSONATING, as_node


def _list_pods(client: Client, settings: ClusterSettings) -> None:
    query: dict[str, str | int] = {"fieldSelector": f"spec.nodeName={settings.node}", "limit": 1}
    client.page(core("pods"), lambda _: None, query)
