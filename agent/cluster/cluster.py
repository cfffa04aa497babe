"""The agent's part that speaks with the API server."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent.clock import timestamp
from agent.cluster.acts import Acts, Clients
from agent.cluster.claims import ClaimReader
from agent.cluster.node_cards import NodeCardsWriter
from agent.cluster.settings import COMPONENT, Impersonation
from agent.cluster.watched_cluster import NO_TEXTS, WatchedCluster
from agent.events.episodes import EventCreate
from agent.fence import NO_CLAIMS, ClaimsOfPod, PodContext
from agent.model.decision import Action, ActResult, Answer
from agent.model.pod import pods_on_node
from agent.model.state import ClusterStatus, Identity
from agent.pod_view import read_pod_on_node
from gpufence.errors import GpufenceError
from gpufence.shape import as_object, as_text
from kube import ConflictError, ForbiddenError, NotFoundError, PatchType, core
from kube.background import Background
from kube.event_writer import EventWriter
from kube.events import EventText, Reporter
from kube.repeating import Repeating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent.cluster.node_cards import NodeReport
    from agent.cluster.settings import ClusterSettings
    from agent.events.episodes import EventPatch
    from agent.model.decision import Verdict
    from agent.model.pod import PodCondition, PodOnNode, PodsOnNode
    from gpufence.cards import NodeCards
    from gpufence.mode import Mode
    from gpufence.shape import Object
    from kube import Client, JsonObject
    from kube.informers.views import NamespaceView

Conditions: TypeAlias = "Mapping[str, PodCondition]"
"""Those of one pod, by their kinds."""

_log = logging.getLogger(__name__)
_MOST_WAITING: Final = 256
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
        self._events = EventWriter(
            reporter, help_url=settings.help_url, request_seconds=settings.request_seconds
        )
        self._conditions = ConditionWriter(settings)
        self._acts = Acts(settings, self._context, self._claims.of_pod)
        self._waiting: tuple[Callable[[Client], None], ...] = (
            self._view.follow_node,
            self._claims.start,
            self._events.start,
            self._conditions.start,
        )
        self._finding = Repeating(
            "identity", self._find_out, forbidden=REMEDY, backoff=settings.backoff
        )

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
        self._conditions.stop()
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

    @property
    def node_metadata(self) -> Object:
        """Return what of the Node's means something here, as last known; nothing before that."""
        return as_object(self._view.node.get("metadata"), "metadata")

    @property
    def node_uid(self) -> str:
        """Return that of the Node, empty before it was read."""
        return as_text(self.node_metadata.get("uid"), "metadata.uid")

    def publish(self, cards: NodeCards) -> None:
        """Have the Node say which cards it has; repeated until it does."""
        self._cards.publish(cards)

    def write(self, writes: Iterable[EventCreate | EventPatch]) -> None:
        """Have Events written; those that cannot be queued are dropped and counted."""
        for item in writes:
            notice = item.notice
            text = EventText(notice.reason, notice.message, anchor=notice.anchor)
            times = 1 if isinstance(item, EventCreate) else item.count
            self._events.count(item.serial, notice.regarding, text, times, urgent=notice.urgent)

    def say(self, conditions: Iterable[PodCondition]) -> None:
        """Have pods say this of themselves; of each only the last word counts."""
        self._conditions.say(conditions)

    def carry_out(self, verdict: Verdict) -> ActResult:
        """
        Ask the API server to make a pod go, after a last look at the pod itself. Blocks; not KILL.
        """
        if verdict.action in {None, Action.KILL}:
            raise ValueError(f"{verdict.action} is no act of the API server's")
        if self._acting is None:
            return ActResult(Answer.FAILED, detail="the identity to act as is not known yet")
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
        """Find out which identity to act by, and start all that needs it."""
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


class ConditionWriter:
    """Writes conditions as the account that acts, once that is known."""

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._client: Client  # from the start on
        self._background: Background[str, Conditions] = Background(
            "conditions of pods",
            self._write,
            keep=_MOST_WAITING,
            forbidden="apply the agent's rights of this version",
            merge=lambda known, newer: {**known, **newer},
        )

    def start(self, client: Client) -> None:
        self._client = client
        self._background.start()

    def stop(self) -> None:
        """End; a word that has not gone out is not needed any more."""
        self._background.stop(0.0)

    def say(self, conditions: Iterable[PodCondition]) -> None:
        pods: dict[str, dict[str, PodCondition]] = {}
        for item in conditions:
            pods.setdefault(item.uid, {})[item.kind] = item
        for uid, items in pods.items():
            self._background.put(uid, items)

    def _write(self, _: str, conditions: Conditions) -> None:
        first, *_others = conditions.values()
        try:
            self._client.patch(
                f"{core('namespaces', first.namespace, 'pods', first.name)}/status",
                conditions_patch(conditions, timestamp()),
                PatchType.STRATEGIC,
                timeout_seconds=self._settings.request_seconds,
            )
        except (NotFoundError, ConflictError):
            _log.debug("pod %s/%s is another one by now", first.namespace, first.name)


def conditions_patch(conditions: Conditions, now: str) -> JsonObject:
    """Change these conditions of this very pod; the kubelet's are merged by type."""
    return {
        "metadata": {"uid": next(iter(conditions.values())).uid},
        "status": {"conditions": [_written(item, now) for item in conditions.values()]},
    }


def _written(item: PodCondition, now: str) -> JsonObject:
    turned = {"lastTransitionTime": now} if item.turned else {}
    return {
        "type": item.kind,
        "status": item.status,
        "reason": item.reason,
        "message": item.message,
        "lastProbeTime": now,
        **turned,
    }


NO_CLAIMS_YET: Final[Mapping[str, ClaimsOfPod]] = {}


class Sources(NamedTuple):
    """All that the index is made of. Every part is replaced as a whole when it changes."""

    pods: Mapping[str, JsonObject]
    namespaces: Mapping[str, NamespaceView]
    highest: Mode
    report: NodeReport | None
    claims: Mapping[str, ClaimsOfPod] = NO_CLAIMS_YET


class _Indexed(NamedTuple):
    raw: JsonObject
    context: PodContext
    claims: ClaimsOfPod
    pod: PodOnNode | None


class PodIndex:
    """
    Remembers what was read from what: the same in, the same out, for each pod and for all of them.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._indexed: dict[str, _Indexed] = {}
        self._sources: Sources | None = None
        self._pods = pods_on_node((), fresh=False)

    def pods(self, sources: Sources, *, fresh: bool) -> PodsOnNode:
        """Return the pods of these sources; the same object while nothing has changed."""
        with self._lock:
            if not _same(self._sources, sources):
                self._indexed = self._read(sources)
                readable = (item.pod for item in self._indexed.values() if item.pod is not None)
                self._pods = pods_on_node(readable, fresh=fresh)
                self._sources = sources
            elif self._pods.fresh is not fresh:
                self._pods = replace(self._pods, fresh=fresh)
            return self._pods

    def context(
        self, namespace: NamespaceView, highest: Mode, report: NodeReport | None
    ) -> PodContext:
        """
        Return what holds for a pod of such a namespace, under this kill switch.

        Without cards nobody has a limit: what NVML does not show is not known.
        """
        return PodContext(
            labels=namespace.labels,
            annotations=namespace.annotations,
            highest=highest,
            cards=() if report is None else report.cards.cards,
            units=self._settings.units if report is None else report.units,
            exempt_namespaces=self._settings.exempt_namespaces,
        )

    def _read(self, sources: Sources) -> dict[str, _Indexed]:
        contexts: dict[str, PodContext] = {}
        indexed = {}
        for uid, raw in sources.pods.items():
            name = str(raw["metadata"].get("namespace", ""))
            if name not in contexts:
                namespace = sources.namespaces.get(name, NO_TEXTS)
                contexts[name] = self.context(namespace, sources.highest, sources.report)
            context = contexts[name]
            before = self._indexed.get(uid)
            claims = sources.claims.get(uid, NO_CLAIMS)
            if (
                before is None
                or before.raw is not raw
                or before.claims is not claims
                or before.context != context
            ):
                before = _Indexed(raw, context, claims, _read_quietly(raw, context, claims))
            indexed[uid] = before
        return indexed


def _same(known: Sources | None, sources: Sources) -> bool:
    return known is not None and all(
        one is other for one, other in zip(known, sources, strict=True)
    )


def _read_quietly(raw: JsonObject, context: PodContext, claims: ClaimsOfPod) -> PodOnNode | None:
    """Read a pod; what cannot be read at all is left out, and its processes belong to nobody."""
    try:
        return read_pod_on_node(raw, context, claims)
    except GpufenceError as error:
        _log.warning("a pod cannot be read and is left out: %s", error)
        return None
