"""The real cluster behind `agent.ports.ClusterPort`."""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Final

from agent.cluster.acts import Acts, Clients
from agent.cluster.claims import ClaimReader
from agent.cluster.condition_writer import ConditionWriter
from agent.cluster.event_writer import EventWriter
from agent.cluster.need_store import NeedStore
from agent.cluster.node_view import NodeView
from agent.cluster.pod_index import PodIndex, Sources
from agent.cluster.publisher import Publisher
from agent.cluster.settings import Impersonation
from agent.cluster.watches import Watches
from agent.model.decision import Action, ActResult, Answer
from agent.model.state import ClusterStatus, Identity
from kube import ForbiddenError, KubeError, core

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.cluster.filter import NamespaceTexts
    from agent.cluster.settings import ClusterSettings
    from agent.events import EventCreate, EventPatch
    from agent.fence import PodContext
    from agent.model.activity import IdleCondition
    from agent.model.decision import Verdict
    from agent.model.need import StoredNeed
    from agent.model.pod import PodsOnNode
    from gpufence.cards import NodeCards
    from gpufence.mode import Mode
    from gpufence.need import NodeNeed
    from kube import Client

_log = logging.getLogger(__name__)
_NO_NAMESPACES: Final[Mapping[str, NamespaceTexts]] = {}

REMEDY = (
    "apply deploy/base on Kubernetes 1.36 and later, deploy/overlays/kubernetes-1.30 on an older "
    "one, and check GPUFENCE_NODE and GPUFENCE_IMPERSONATION"
)


class AgentCluster:
    """Watches, writes and evicts; `client` speaks as the agent's own account."""

    def __init__(self, client: Client, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._stop = threading.Event()
        self._identity = Identity.UNKNOWN
        self._acting: Client | None = None
        self._trouble = ""
        self._changed = threading.Event()
        self._claims = ClaimReader(settings, lambda: self._watches.pods)
        self._watches = Watches(settings, self._changed.set, self._claims.look)
        self._view = NodeView(self._watches, settings.units)
        self._index = PodIndex(settings)
        self._publisher = Publisher(settings, self._watches, self._view, self._changed)
        self._writer = EventWriter(settings)
        self._conditions = ConditionWriter(settings)
        self._need = NeedStore(settings)
        self._acts = Acts(settings, self._context, self._claims.of_pod)
        self._thread = threading.Thread(target=self._begin, name="identity", daemon=True)

    def start(self) -> None:
        """Begin to watch, publish and write on threads of our own; returns at once."""
        self._watches.start_own(self._client)
        self._need.start(self._client)
        self._publisher.start(self._client)
        self._thread.start()

    def close(self) -> None:
        """End all threads, within a few seconds; Events that wait get their last chance."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(self._settings.close_seconds)
        self._publisher.stop()
        self._writer.stop()
        self._conditions.stop()
        self._need.stop()
        self._claims.stop()
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
        return self._index.pods(self._sources(), fresh=self._watches.trust().fresh)

    def publish(self, cards: NodeCards) -> None:
        if self._view.measured(cards):
            self._changed.set()

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        self._writer.write(writes)

    def say_idle(self, conditions: Iterable[IdleCondition]) -> None:
        self._conditions.write(conditions)

    def stored_need(self) -> StoredNeed | None:
        return self._need.found

    def store_need(self, need: NodeNeed) -> None:
        self._need.store(need)

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
        watches, report = self._watches, self._view.report()
        complete = watches.complete and report is not None
        return Sources(
            pods=watches.pods,
            namespaces=watches.namespaces if complete else _NO_NAMESPACES,
            highest=watches.highest,
            report=report,
            claims=self._claims.known,
        )

    def _context(self, namespace: NamespaceTexts, highest: Mode) -> PodContext:
        return self._index.context(namespace, highest, self._view.report())

    def _begin(self) -> None:
        """Find out as whom to act, however long that takes, and start all that needs to know."""
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
                self._claims.start(acting)
                self._writer.start(acting)
                self._conditions.start(acting)
                return


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
