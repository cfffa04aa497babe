"""
PURE. Who goes first: the worst excess, one pod for each card and pass, within the caps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.judge.brakes import cap_brake
from agent.model.decision import Outcome
from agent.model.memory import Evicted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from agent.judge.tick import Tick
    from agent.model.decision import Verdict


def chosen(
    verdicts: Sequence[Verdict], held: Mapping[str, AbstractSet[str]], tick: Tick
) -> tuple[list[Verdict], list[Verdict]]:
    """
    Return all verdicts with those that must wait turned into such, and the ones to carry out.

    `held` are the cards on which a pod holds memory: going, it frees them all, so that nobody else
    on any of them goes in the same pass.
    """
    evicted = list(tick.memory.evicted)
    taken: set[str] = set()
    settled: dict[int, Verdict] = {}
    acts: list[Verdict] = []
    due = [(index, item) for index, item in enumerate(verdicts) if item.action is not None]
    for index, verdict in sorted(due, key=lambda pair: _rank(pair[1])):
        pod = verdict.pod
        cards = held[pod.uid]
        brake = cap_brake(evicted, pod.namespace, tick.now, tick.policy)
        if not taken.isdisjoint(cards):
            settled[index] = verdict._replace(outcome=_waiting(verdict), action=None)
        elif brake is not None:
            outcome = _waiting(verdict, Outcome.BRAKED)
            settled[index] = verdict._replace(outcome=outcome, action=None, brake=brake)
        else:
            taken.update(cards)
            evicted.append(Evicted(tick.now, pod.namespace))
            acts.append(verdict)
    return [settled.get(index, item) for index, item in enumerate(verdicts)], acts


def _waiting(verdict: Verdict, otherwise: Outcome = Outcome.QUEUED) -> Outcome:
    return Outcome.STUCK if verdict.outcome is Outcome.STUCK else otherwise


def _rank(verdict: Verdict) -> tuple[int, str, str]:
    card = "" if verdict.card is None else verdict.card.card.uuid
    return -verdict.excess_bytes, verdict.pod.uid, card
