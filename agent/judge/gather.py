"""
PURE. Every fenced pod with the cards it holds memory on, or did a moment ago.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agent.judge.standing import stand
from agent.model.memory import PodMemory
from agent.model.use import PodUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.judge.standing import Standing
    from agent.model.memory import Memory
    from agent.model.pod import PodOnNode, PodsOnNode
    from agent.model.policy import Policy
    from agent.model.use import CardUse, NodeUse
    from gpufence.mode import Mode


class Place(NamedTuple):
    """
    A pod on a card; no standing where nothing says what it may hold there.
    """

    card: CardUse
    use: PodUse
    standing: Standing | None


class Subject(NamedTuple):
    """
    A pod, what is remembered of it, and its places by card.
    """

    pod: PodOnNode
    past: PodMemory
    places: Mapping[str, Place]


def gathered(use: NodeUse, pods: PodsOnNode, memory: Memory, policy: Policy) -> list[Subject]:
    """
    Return the fenced pods in the order of the index, which is always the same.
    """
    held: dict[str, dict[str, PodUse]] = {}
    for uuid, card in use.cards.items():
        for uid, pod_use in card.pods.items():
            held.setdefault(uid, {})[uuid] = pod_use
    subjects = []
    for pod in pods.by_uid.values():
        if pod.mode is not None:
            past = _past(memory.pods.get(pod.uid), pod.mode)
            uses = held.get(pod.uid, {})
            if past.watches:
                uses = uses | dict(_left(pod.uid, past, use, uses))
            places = {
                uuid: _place(pod, use.cards[uuid], uses[uuid], policy) for uuid in sorted(uses)
            }
            subjects.append(Subject(pod, past, places))
    return subjects


def _past(past: PodMemory | None, mode: Mode) -> PodMemory:
    """
    Return what is remembered; any rise in mode starts every count of time from zero.
    """
    if past is None or past.mode < mode:
        return PodMemory(mode)
    return past if past.mode is mode else replace(past, mode=mode)


def _left(
    uid: str, past: PodMemory, use: NodeUse, held: Mapping[str, PodUse]
) -> Iterator[tuple[str, PodUse]]:
    """
    Yield the cards where time is being counted though the pod holds nothing there now.

    Its buckets drain like any other's: letting go for a second must not empty them.
    """
    for uuid in past.watches:
        if uuid in use.cards and uuid not in held:
            nothing = None if use.cards[uuid].listed_at is None else 0
            yield uuid, PodUse(uid, nothing, nothing)


def _place(pod: PodOnNode, card: CardUse, use: PodUse, policy: Policy) -> Place:
    limit = pod.limits.get(card.card.uuid)
    return Place(card, use, None if limit is None else stand(pod, card, use, limit, policy))
