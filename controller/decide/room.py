"""
PURE. What nodes have left of their GPUs, how many more pods of a kind fit there, and which idle
owner's GPUs a pod waits for.

GPU resources, places for pods, taints, selectors and node affinity count; what an extender deals
out card by card is counted card by card; and where a limit is known that no scheduler counts, so is
the memory of the cards. Cores and memory of the host do not count. KAI's shares are in no pod's
requests: one of its pods is only ever said to fit on cards that are free as a whole.

A pod waits for an owner if, on one node where it may run, it asks of each GPU resource no more than
that owner holds there and is free. Other rules of the scheduler do not count, nor do owners that
would have to go together: docs/idle.md says what that costs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.annotations import NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard, assigned_card, usable_cards
from gpufence.dialects import ADVERTISED_AS, gpushare, kai, mig, volcano
from gpufence.errors import InvalidError
from gpufence.idle import ReleasePhase
from gpufence.limits import Limits, read_limits
from gpufence.nodes import allows, tolerates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from controller.model import (
        ClusterState,
        NodeRoom,
        OwnerKey,
        OwnerState,
        PodState,
    )
    from gpufence.cards import Card
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod

_BY_CARD: Final = {
    names.GPUSHARE_MEMORY: names.GPUSHARE_COUNT,
    names.VOLCANO_MEMORY: names.VOLCANO_NUMBER,
}
"""Resources whose extender puts a pod on one card, and what says how many cards there are."""

_COUNTED: Final = frozenset(each.SPEC.name for each in (gpushare, kai, mig, volcano))
"""Dialects whose amounts are in those sums already, or are not of cards that others share."""

_MOST_WAITERS: Final = 32
"""The pods that are looked at in one pass: those that have waited longest."""

_LEAVING: Final = (ReleasePhase.RELEASING, ReleasePhase.RELEASED)

_PLENTY: Final = 2**31
"""More than any node holds: what does not bound how many fit."""


class PodNeed(NamedTuple):
    """
    What a pod needs of each of so many cards; `granted` where somebody has written the amount.
    """

    dialect: str
    request_bytes: int
    cards: int
    granted: bool


@dataclass(eq=False)
class Places:
    """
    What nodes have left at one moment, added up once for all who ask, and only if anybody does.
    """

    world: ClusterState
    _left: Mapping[str, NodeLeft] | None = field(default=None, init=False)

    def room(self, template: PodState) -> int:
        """Return how many more pods like this one fit on the nodes it allows."""
        if self._left is None:
            self._left = nodes_left(self.world)
        return sum(left.fitting(template) for left in self._left.values())


def nodes_left(world: ClusterState, without: frozenset[str] = frozenset()) -> dict[str, NodeLeft]:
    """Return what each node has left, as if the pods of these UIDs were gone."""
    left = {name: NodeLeft(node) for name, node in world.nodes.items()}
    for pod in world.pods:
        if pod.node in left and pod.uid not in without:
            left[pod.node].put(pod)
    return left


class NodeLeft:
    """What one node has left. Pods are put there and taken away in thought."""

    def __init__(self, node: NodeRoom) -> None:
        self.node = node.node
        self._room = node
        self._left = dict(node.allocatable)
        self._pods: dict[str, PodState] = {}
        self._cards = {
            resource: _equal_cards(node, resource, count)
            for resource, count in _BY_CARD.items()
            if resource in node.allocatable
        }

    def put(self, pod: PodState) -> None:
        """Put a pod there: on the card it has, else on the fullest that has room for it."""
        self._pods[pod.uid] = pod
        self._count(pod, -1)

    def take(self, pod: PodState) -> bool:
        """Take a pod away; return whether it was there."""
        if self._pods.pop(pod.uid, None) is None:
            return False
        self._count(pod, 1)
        return True

    def permits(self, pod: PodState) -> bool:
        """Return whether the pod may run there at all, whatever is left."""
        if self._room.unschedulable or not tolerates(pod.tolerations, self._room.taints):
            return False
        try:
            return pod.gpu is None or allows(pod.gpu, self.node.name, self.node.labels)
        except InvalidError:
            return False

    def lacking(self, pod: PodState) -> dict[str, int] | None:
        """Return what is missing of what a pod asks for; None where the node has nothing of it."""
        lacking = {}
        for name, amount in pod.requests.items():
            left = self._left.get(name)
            if left is None:
                if amount and ADVERTISED_AS.get(name) not in self._left:
                    return None
            elif amount > left:
                lacking[name] = amount - left
        return lacking

    def takes(self, pod: PodState) -> bool:
        """Return whether a pod fits, and may run there."""
        return self.fitting(pod) > 0

    def takes_without(self, pod: PodState, others: Iterable[PodState]) -> bool:
        """Return whether a pod fits without others that are there."""
        taken = [other for other in others if self.take(other)]
        fits = self.takes(pod)
        for other in taken:
            self.put(other)
        return fits

    def fitting(self, pod: PodState) -> int:
        """Return how many more pods like this one fit."""
        fits = _PLENTY if pod.requests else 0
        for name, amount in pod.requests.items():
            fits = min(fits, self._by_resource(name, amount))
            if fits <= 0:
                return 0
        if not self.permits(pod):
            return 0
        need = None if pod.gpu is None else card_need(pod.gpu, self.node)
        if need is not None and need.dialect == kai.SPEC.name:
            fits = min(fits, self._by_whole_cards(need))
        elif need is not None and need.granted and need.dialect not in _COUNTED:
            fits = min(fits, self._by_memory(need))
        return max(fits, 0)

    def _by_resource(self, name: str, amount: int) -> int:
        if not amount:
            return _PLENTY
        if name not in self._left:  # some are counted by their own scheduler alone
            return _PLENTY if ADVERTISED_AS.get(name) in self._left else 0
        cards = self._cards.get(name)
        by_card = _PLENTY if cards is None else sum(max(each, 0) // amount for each in cards)
        return min(self._left[name] // amount, by_card)

    def _by_whole_cards(self, need: PodNeed) -> int:
        """Return how many fit on cards that nobody has a share of."""
        whole = max(self._left.get(names.NVIDIA_GPU, 0), 0)
        sizes = [card.memory_bytes for card in self.node.cards]
        each = min(sizes, default=0) // max(need.request_bytes, 1)
        return whole // need.cards * each

    def _by_memory(self, need: PodNeed) -> int:
        """
        Return how many fit into the memory of the cards, wherever on them the others are: each of
        these stands in the way of as many as its own request would make.
        """
        cards = self.node.cards
        if not cards:
            return _PLENTY
        slots = sum(card.memory_bytes // need.request_bytes for card in _whole(cards))
        for pod in self._pods.values():
            other = None if pod.gpu is None else card_need(pod.gpu, self.node)
            if other is not None:
                slots -= -(-other.request_bytes // need.request_bytes) * other.cards
        return slots // need.cards

    def _count(self, pod: PodState, sign: int) -> None:
        for name, amount in pod.requests.items():
            if name in self._left:
                self._left[name] += sign * amount
            if name in self._cards and amount:
                for index in self._indexes(pod, self._cards[name], amount):
                    self._cards[name][index] += sign * amount

    def _indexes(self, pod: PodState, cards: list[int], amount: int) -> list[int]:
        """Return the cards on which a pod counts: on all where nobody knows which one it has."""
        index = None if pod.gpu is None else assigned_card(pod.gpu)
        if index is None and not pod.node:
            able = [(left, place) for place, left in enumerate(cards) if left >= amount]
            index = min(able)[1] if able else None
        if index is None or index >= len(cards):
            return list(range(len(cards)))
        return [index]


def card_need(pod: Pod, node: GpuNode) -> PodNeed | None:
    """Return what a pod needs of the memory of a node's cards; None where nothing tells."""
    sizes = [card.memory_bytes for card in usable_cards(pod, node)]
    card = CandidateCard(node.units, min(sizes, default=None))
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    limits = read_limits(pod, options, NamespaceOptions(), card)
    if not isinstance(limits, Limits) or not limits.request_bytes:
        return None
    cards = max(part.cards for part in limits.parts)
    return PodNeed(limits.dialect, limits.request_bytes, max(cards, 1), limits.enforced)


def _equal_cards(node: NodeRoom, resource: str, count: str) -> list[int]:
    """Split a resource over the cards, all of which its device plugin takes to be equal."""
    number = node.allocatable.get(count) or len(_whole(node.node.cards)) or 1
    return [node.allocatable[resource] // number] * number


def _whole(cards: tuple[Card, ...]) -> list[Card]:
    return [card for card in cards if card.mig is None]


class _Holder(NamedTuple):
    """An idle owner's pods on one node, and what they hold there; the lowest rank goes first."""

    rank: int
    owner: OwnerState
    pods: tuple[PodState, ...]
    amounts: Mapping[str, int]


class _Holders(NamedTuple):
    """The idle owners on one node, and the most that any one of them holds of each resource."""

    each: Sequence[_Holder]
    most: Mapping[str, int]


def waited_for(
    world: ClusterState,
    waiters: Iterable[PodState],
    idle: Sequence[OwnerState],
    able: Collection[OwnerKey],
) -> dict[OwnerKey, PodState]:
    """
    Return which pod waits for which idle owner, at most one for each.

    Of those that are `able` to go now the one with the fewest pods is chosen, and of equal ones the
    first of `idle`; only a pod that none of them lets in waits for another, and gets nothing by
    that. A pod for which there is room waits for nothing.
    """
    left = nodes_left(world, _leaving(world))
    ranked = sorted(idle, key=lambda owner: (owner.key not in able, len(owner.pods)))
    here = _by_node(ranked, left)
    found: dict[OwnerKey, PodState] = {}
    hopeless: list[PodState] = []  # until somebody makes way, of which more may be left over
    for waiter in [pod for pod in waiters if _is_plain(pod)][:_MOST_WAITERS]:
        if any(_asked(waiter) == _asked(other) for other in hopeless):
            continue
        free = next((each for each in left.values() if each.takes(waiter)), None)
        if free is not None:
            free.put(waiter)
            continue
        best = _best(waiter, here, left, found)
        if best is None:
            hopeless.append(waiter)
            continue
        node, owner = best
        found[owner.key] = waiter
        if owner.key in able:
            _make_way(owner, left)
            node.put(waiter)
            hopeless.clear()
    return found


def _make_way(owner: OwnerState, left: Mapping[str, NodeLeft]) -> None:
    for pod in owner.pods:
        if pod.node in left:
            left[pod.node].take(pod)


def _by_node(ranked: Iterable[OwnerState], left: Mapping[str, NodeLeft]) -> dict[str, _Holders]:
    """Return who is on each node, in the order in which they go."""
    found: dict[str, list[_Holder]] = defaultdict(list)
    for rank, owner in enumerate(ranked):
        pods: dict[str, list[PodState]] = defaultdict(list)
        for pod in owner.pods:
            if pod.node in left:
                pods[pod.node].append(pod)
        for name, there in pods.items():
            found[name].append(_Holder(rank, owner, tuple(there), _sum(there)))
    return {name: _Holders(each, _most(each)) for name, each in found.items()}


def _best(
    waiter: PodState,
    here: Mapping[str, _Holders],
    left: Mapping[str, NodeLeft],
    gone: Collection[OwnerKey],
) -> tuple[NodeLeft, OwnerState] | None:
    """Return the first owner to go that makes room for a pod, and on which node."""
    best: tuple[int, NodeLeft, OwnerState] | None = None
    for name, holders in here.items():
        node = left[name]
        lacking = node.lacking(waiter)
        if lacking is None or not _covers(holders.most, lacking) or not node.permits(waiter):
            continue
        for holder in holders.each:
            if best is not None and holder.rank >= best[0]:
                break
            key = holder.owner.key
            if key in gone or key == waiter.owner or not _covers(holder.amounts, lacking):
                continue
            if node.takes_without(waiter, holder.pods):
                best = holder.rank, node, holder.owner
                break
    return None if best is None else best[1:]


def _sum(pods: Sequence[PodState]) -> Mapping[str, int]:
    if len(pods) == 1:
        return pods[0].requests
    total: dict[str, int] = defaultdict(int)
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] += amount
    return total


def _most(holders: Iterable[_Holder]) -> dict[str, int]:
    most: dict[str, int] = {}
    for holder in holders:
        for name, amount in holder.amounts.items():
            most[name] = max(most.get(name, 0), amount)
    return most


def _covers(amounts: Mapping[str, int], lacking: Mapping[str, int]) -> bool:
    return all(amounts.get(name, 0) >= amount for name, amount in lacking.items())


def _leaving(world: ClusterState) -> frozenset[str]:
    """Return the pods whose place is free soon: nobody else need go for it."""
    going = {
        owner.key
        for owner in world.owners.values()
        if owner.replicas == 0 or (owner.note is not None and owner.note.phase in _LEAVING)
    }
    return frozenset(pod.uid for pod in world.pods if pod.terminating or pod.owner in going)


def _asked(pod: PodState) -> tuple[object, ...]:
    """Return what decides which place a pod asks for."""
    return pod.owner, pod.requests, pod.tolerations, pod.gpu


def _is_plain(pod: PodState) -> bool:
    """Return whether everything that decides where a pod may run is worked out here."""
    return not pod.placement and pod.gpu is not None and not pod.gpu.claims
