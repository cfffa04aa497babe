"""
The pods of this node as the judge sees them, made anew only where something changed.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

from agent.cluster.keep import NO_WORDS
from agent.cluster.units import reckon
from agent.model.pod import PodsOnNode, pods_on_node
from agent.pod_view import PodContext, read_pod_on_node
from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.cluster.keep import Words
    from agent.cluster.settings import ClusterSettings
    from agent.cluster.units import Reckoning
    from agent.model.pod import PodOnNode
    from gpufence.cards import Card, NodeCards
    from gpufence.dialects import Units
    from gpufence.mode import Mode
    from kube import JsonObject

_log = logging.getLogger(__name__)


class Sources(NamedTuple):
    """
    All that a picture is made of: what the watches know, and the cards of this node.

    Every part is replaced as a whole when it changes.
    """

    pods: Mapping[str, JsonObject]
    namespaces: Mapping[str, Words]
    node: JsonObject
    highest: Mode
    seen: NodeCards | None


class _Reading(NamedTuple):
    raw: JsonObject
    ground: PodContext
    pod: PodOnNode | None


class Picture:
    """
    Remembers what was read from what: the same in, the same out, for each pod and for all of them.
    """

    def __init__(self, settings: ClusterSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._readings: dict[str, _Reading] = {}
        self._grounds: dict[str, PodContext] = {}
        self._sources: Sources | None = None
        self._reckoned: tuple[NodeCards, JsonObject, Reckoning] | None = None
        self._pods = pods_on_node((), fresh=False)

    def pods(self, sources: Sources, *, fresh: bool) -> PodsOnNode:
        """
        Return the picture of these sources; the same object while nothing has changed.
        """
        with self._lock:
            if not _same(self._sources, sources):
                self._read(sources)
                self._pods = pods_on_node(self._readable(), fresh=fresh)
                self._sources = sources
            elif self._pods.fresh is not fresh:
                known = self._pods
                self._pods = PodsOnNode(known.by_uid, known.by_cgroup, known.by_container, fresh)
            return self._pods

    def ground(self, words: Words, highest: Mode, sources: Sources) -> PodContext:
        """
        Return what a pod stands on whose namespace says so, under this kill switch.
        """
        with self._lock:
            return self._ground(words, highest, *self._cards(sources))

    def _read(self, sources: Sources) -> None:
        cards, units = self._cards(sources)
        self._grounds = {}
        readings = {}
        for uid, raw in sources.pods.items():
            namespace = str(raw["metadata"].get("namespace", ""))
            ground = self._grounds.get(namespace)
            if ground is None:
                words = sources.namespaces.get(namespace, NO_WORDS)
                ground = self._ground(words, sources.highest, cards, units)
                self._grounds[namespace] = ground
            before = self._readings.get(uid)
            if before is None or before.raw is not raw or before.ground != ground:
                before = _Reading(raw, ground, _read_quietly(raw, ground))
            readings[uid] = before
        self._readings = readings

    def _readable(self) -> Iterator[PodOnNode]:
        for reading in self._readings.values():
            if reading.pod is not None:
                yield reading.pod

    def _ground(
        self, words: Words, highest: Mode, cards: tuple[Card, ...], units: Units
    ) -> PodContext:
        return PodContext(
            labels=words.labels,
            annotations=words.annotations,
            highest=highest,
            cards=cards,
            units=units,
            exempt_namespaces=self._settings.exempt_namespaces,
        )

    def _cards(self, sources: Sources) -> tuple[tuple[Card, ...], Units]:
        """
        Without cards nobody has a limit: what NVML does not show is not known.
        """
        if sources.seen is None:
            return (), self._settings.units
        known = self._reckoned
        if known is None or known[0] is not sources.seen or known[1] is not sources.node:
            reckoned = reckon(sources.seen, sources.node, self._settings.units)
            known = self._reckoned = (sources.seen, sources.node, reckoned)
        return known[2].cards, known[2].units


def _same(known: Sources | None, sources: Sources) -> bool:
    return known is not None and all(
        one is other for one, other in zip(known, sources, strict=True)
    )


def _read_quietly(raw: JsonObject, ground: PodContext) -> PodOnNode | None:
    """
    Read a pod; what cannot be read at all is left out, and its processes belong to nobody.
    """
    try:
        return read_pod_on_node(raw, ground)
    except GpufenceError as error:
        _log.warning("a pod cannot be read and is left out: %s", error)
        return None
