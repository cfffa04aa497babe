"""
One look at the node: what the cards say, whose processes that is, and which pods those are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent.attribute import attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import NodeUse
    from agent.ports import Cards, Processes


class Seen(NamedTuple):
    """
    A sample, what it means, and the pods it was told by.
    """

    sample: Sample
    use: NodeUse
    pods: PodsOnNode


class Eyes:
    """
    Looks, and remembers the look before: two lists in a row make a process certain.
    """

    def __init__(self, cards: Cards, processes: Processes, pods: Callable[[], PodsOnNode]) -> None:
        self._cards = cards
        self._processes = processes
        self._pods = pods
        self._before: NodeUse | None = None

    def look(self, suspects: frozenset[str]) -> Seen:
        sample = self._cards.sample(suspects)
        occupants = self._processes.occupants(set(_newly_listed(sample, self._before)))
        # The pods are asked for last: who is on the card may be younger than the look before.
        pods = self._pods()
        self._before = attribute(sample, occupants, pods, self._before)
        return Seen(sample, self._before, pods)


def _newly_listed(sample: Sample, before: NodeUse | None) -> Iterator[int]:
    """
    Yield the PIDs of the lists that are new; the others keep the owners they had.
    """
    past = {} if before is None else before.cards
    for card in sample.cards:
        listed = card.processes
        known = past.get(card.card.uuid)
        if listed is not None and (known is None or known.listed_at != listed.listed_at):
            yield from (process.pid for process in listed.processes)
