"""The pods of this node as the judge sees them, made anew only where something changed."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.cluster.watched_cluster import NO_TEXTS
from agent.fence import NO_CLAIMS, ClaimsOfPod, PodContext
from agent.model.pod import pods_on_node
from agent.pod_view import read_pod_on_node
from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.cluster.node_cards import NodeReport
    from agent.cluster.settings import ClusterSettings
    from agent.model.pod import PodOnNode, PodsOnNode
    from gpufence.mode import Mode
    from kube import JsonObject
    from kube.informers.views import NamespaceView

_log = logging.getLogger(__name__)


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
