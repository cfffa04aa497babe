"""
Who is reported on, and what the agents of their nodes say: all nodes with GPU pods in fenced
namespaces, a few at a time.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.last_look import agents_row
from controller.reports.document import ReportLine
from controller.reports.results import ReportTerms, results_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from controller.model import ClusterState, OwnerState, PodState
    from controller.settings import ControllerSettings
    from gpufence.mode import Mode
    from gpufence.pods import Pod
    from gpufence.snapshot import Snapshot

AT_ONCE: Final = 4
"""Agents that are asked at the same time: others want to ask some, too."""
NO_NODE: Final = "no node has taken it yet"


class _Asked(NamedTuple):
    """A pod in a fenced namespace, and what it is held to."""

    pod: PodState
    gpu: Pod
    terms: ReportTerms


class PodAsking:
    """
    `agents` tells what the agents of a few nodes see, None of one that does not answer; `goes_on`
    whether there is any use in asking further, and `pause` waits for some seconds.
    """

    def __init__(
        self,
        agents: Callable[[Sequence[str]], Mapping[str, Snapshot | None]],
        settings: ControllerSettings,
        goes_on: Callable[[], bool],
        pause: Callable[[float], object],
    ) -> None:
        self._agents = agents
        self._settings = settings
        self._goes_on = goes_on
        self._pause = pause

    def lines(
        self, state: ClusterState, fenced: Mapping[str, Mode]
    ) -> Mapping[str, list[ReportLine]] | None:
        """
        Return what there is to report, by namespace; None where not all have been asked. Of what
        agents say no more is kept than is reported.
        """
        asked: dict[str, list[_Asked]] = defaultdict(list)
        for each in self._pods(state, fenced):
            asked[each.pod.node].append(each)
        lines: dict[str, list[ReportLine]] = defaultdict(list)
        for node, snapshot in self._looks(sorted(asked)):
            for pod, gpu, terms in asked.pop(node):
                row = agents_row(pod, snapshot) if node else NO_NODE
                results = results_of(gpu, row, terms)
                lines[pod.namespace] += [ReportLine(pod, result) for result in results]
        return None if asked else lines

    def _pods(self, state: ClusterState, fenced: Mapping[str, Mode]) -> Iterator[_Asked]:
        default = self._settings.unit_defaults
        for owner in state.owners.values():
            mode = fenced.get(owner.key.namespace)
            if mode is None:
                continue
            for pod in owner.pods:
                if pod.gpu is not None and not pod.terminating:
                    room = state.nodes.get(pod.node)
                    units = default if room is None else room.node.units
                    terms = ReportTerms(mode, self._idle_after(owner), units)
                    yield _Asked(pod, pod.gpu, terms)

    def _idle_after(self, owner: OwnerState) -> float:
        words = owner.words
        return self._settings.rules.after_seconds if words is None else words.after_seconds

    def _looks(self, nodes: Sequence[str]) -> Iterator[tuple[str, Snapshot | None]]:
        """Yield what each node's agent sees, over half of a pass; nobody is asked of no node."""
        batches = [nodes[first : first + AT_ONCE] for first in range(0, len(nodes), AT_ONCE)]
        for batch in batches:
            if not self._goes_on():
                return
            began = time.monotonic()
            found = self._agents([node for node in batch if node])
            for node in batch:
                yield node, found.get(node)
            share = self._settings.reports.pass_seconds / 2 / len(batches)
            self._pause(max(share - (time.monotonic() - began), 0.0))
