"""
Looking again and again, for as long as somebody watches, without being a burden: agents are asked
at each look, the API server's lists less often the longer they take, and an agent that keeps
everybody waiting is left alone for a while.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from gpufence.snapshot import CARDS_AND_PODS
from kube import KubeError
from kubectl_gpufence.cluster_view import cluster_of
from kubectl_gpufence.output import advice

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent, SeenObjects
    from kubectl_gpufence.pods import StatusPod
    from kubectl_gpufence.reader import ClusterReader

T = TypeVar("T")

AGENT_SECONDS: Final = 2.0
REST_SECONDS: Final = 10.0
"""An agent that was late is not asked for so long, and twice as long each time it is late again."""

_MOST_REST_SECONDS: Final = 60.0
_LIST_SHARE: Final = 10


class SkippedAgent(NamedTuple):
    """
    What a late agent gave instead of an answer, until when it is left alone, and after how long.
    """

    answer: NodeAgent
    until: float
    seconds: float


class CachedAnswer(Generic[T]):
    """
    An answer of the API server that is asked for anew no sooner than after `least_seconds`, and
    after ten times as long as it took.
    """

    def __init__(
        self,
        read: Callable[[], T],
        least_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._least = least_seconds
        self._clock = clock
        self._answer: T | None = None
        self._trouble = ""
        self._next = 0.0

    def get(self) -> tuple[T, str]:
        """
        Return the answer, and why it is old if the API server does not give it any longer.

        Raises:
            KubeError: it has never given it.
        """
        since = self._clock()
        if self._answer is not None and since < self._next:
            return self._answer, self._trouble
        try:
            self._answer, self._trouble = self._read(), ""
        except KubeError as error:
            if self._answer is None:
                raise
            self._trouble = f"this is an old look: {advice(error)}"
        now = self._clock()
        self._next = now + max(self._least, _LIST_SHARE * (now - since))
        return self._answer, self._trouble


class LiveLooks:
    """A cluster that is looked at again and again, by one thread."""

    def __init__(
        self,
        reader: ClusterReader,
        objects: Callable[[ClusterReader], SeenObjects],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        seconds = min(reader.agent_seconds, AGENT_SECONDS)
        self._over = threading.Event()
        self.reader = replace(
            reader, agent_seconds=seconds, progress=lambda _: None, over=self._over.is_set
        )
        self._objects = CachedAnswer(lambda: objects(self.reader), clock=clock)
        self._clock = clock
        self._skipped: dict[str, SkippedAgent] = {}

    def look(self) -> ClusterAnswers:
        """
        Look once more; what the API server does not tell any longer is as old as its last answer,
        which a note says.

        Raises:
            KubeError: it has not told anything yet.
        """
        objects, trouble = self._objects.get()
        now = self._clock()
        skipped = {name: item for name, item in self._skipped.items() if item.until > now}
        asked = [pod for pod in objects.agent_pods if pod.name not in skipped]
        answers = self.reader.agents(asked, CARDS_AND_PODS)
        spared = [skipped[pod.name].answer for pod in objects.agent_pods if pod.name in skipped]
        self._skip(objects.agent_pods, answers)
        notes = (*objects.notes, trouble) if trouble else objects.notes
        return cluster_of(objects._replace(notes=notes), (*answers, *spared))

    def stop(self) -> None:
        """Ask nobody any longer: whoever ends while agents hang does not wait for all of them."""
        self._over.set()

    def _skip(self, pods: tuple[StatusPod, ...], answers: tuple[NodeAgent, ...]) -> None:
        """Remember who was late, of those that are still there."""
        now = self._clock()
        there = {pod.name for pod in pods}
        kept = {name: item for name, item in self._skipped.items() if name in there}
        for answer in answers:
            before = kept.pop(answer.pod, None)
            if answer.late:
                doubled = REST_SECONDS if before is None else 2 * before.seconds
                seconds = min(doubled, _MOST_REST_SECONDS)
                kept[answer.pod] = SkippedAgent(answer, now + seconds, seconds)
        self._skipped = kept


def objects_in_view(reader: ClusterReader, namespace: str, node: str = "") -> SeenObjects:
    """
    Read the pods of a namespace, or of all, and the nodes they run on: of one namespace only those
    where it has pods.
    """
    objects = reader.objects_of_pods(namespace, node)
    used = {node} if node else {pod.node for pod in objects.pods} if namespace else None
    if used is None:
        return objects
    nodes = {name: item for name, item in objects.nodes.items() if name in used}
    return objects._replace(nodes=nodes)
