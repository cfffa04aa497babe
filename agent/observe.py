"""One look at the node: what the cards say, whose processes that is, and which pods those are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.attribute import attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.model.pod import PodsOnNode
    from agent.model.sample import Sample
    from agent.model.use import Observation
    from agent.ports import Cards, Processes


class Observer:
    """
    Looks, and remembers the look before: what has not changed is not read again, and a PID that has
    changed hands is not certain yet.
    """

    def __init__(
        self,
        cards: Cards,
        processes: Processes,
        pods: Callable[[], PodsOnNode],
        *,
        charge_mps: bool = False,
    ) -> None:
        self._cards = cards
        self._processes = processes
        self._pods = pods
        self._charge_mps = charge_mps
        self._before: Observation | None = None

    def look(self, suspects: frozenset[str]) -> Observation:
        sample = self._cards.sample(suspects)
        occupants = self._processes.occupants(_newly_listed(sample, self._before))
        # The pods are asked for last: who is on the card may be younger than the look before.
        pods = self._pods()
        self._before = attribute(sample, occupants, pods, self._before, charge_mps=self._charge_mps)
        return self._before


def _newly_listed(sample: Sample, before: Observation | None) -> set[int]:
    """Return the PIDs of the lists that are new; the others keep the owners they had."""
    past = {} if before is None else before.cards
    pids: set[int] = set()
    for card in sample.cards:
        listed = card.processes
        known = past.get(card.card.uuid)
        if listed is not None and (known is None or known.listed_at != listed.listed_at):
            pids.update(process.pid for process in listed.processes)
    return pids
