"""
PURE. What nodes have left of their GPUs, and how many more pods of a kind fit there.

GPU resources, places for pods, taints, selectors and node affinity count; what an extender deals
out card by card is counted card by card; and where a limit is known that no scheduler counts, so is
the memory of the cards. Cores and memory of the host do not count. KAI's shares are in no pod's
requests: one of its pods is only ever said to fit on cards that are free as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.annotations import NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard, assigned_card, usable_cards
from gpufence.dialects import ADVERTISED_AS, gpushare, kai, mig, volcano
from gpufence.errors import InvalidError
from gpufence.limits import Limits, read_limits
from gpufence.node_selection import allows, tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controller.model import ClusterState, NodeRoom, PodState
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

_PLENTY: Final = 2**31
"""More than any node holds: what does not bound how many fit."""


class PodNeed(NamedTuple):
    """
    What a pod needs of each of so many cards; `granted` where somebody has written the amount.
    """

    dialect: str
    limit_bytes: int
    cards: int
    granted: bool


class Places:
    """
    What nodes have left at one moment, added up once for all who ask, and only if anybody does.
    """

    def __init__(self, world: ClusterState) -> None:
        self.world = world
        self._left: Mapping[str, NodeLeft] | None = None

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
        each = min(sizes, default=0) // max(need.limit_bytes, 1)
        return whole // need.cards * each

    def _by_memory(self, need: PodNeed) -> int:
        """
        Return how many fit into the memory of the cards, wherever on them the others are: each of
        these stands in the way of as many as its own limit would make.
        """
        cards = self.node.cards
        if not cards:
            return _PLENTY
        slots = sum(card.memory_bytes // need.limit_bytes for card in _whole(cards))
        for pod in self._pods.values():
            other = None if pod.gpu is None else card_need(pod.gpu, self.node)
            if other is not None:
                slots -= -(-other.limit_bytes // need.limit_bytes) * other.cards
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
    if not isinstance(limits, Limits) or not limits.limit_bytes:
        return None
    cards = max(part.cards for part in limits.parts)
    return PodNeed(limits.dialect, limits.limit_bytes, max(cards, 1), limits.enforced)


def _equal_cards(node: NodeRoom, resource: str, count: str) -> list[int]:
    """Split a resource over the cards, all of which its device plugin takes to be equal."""
    number = node.allocatable.get(count) or len(_whole(node.node.cards)) or 1
    return [node.allocatable[resource] // number] * number


def _whole(cards: tuple[Card, ...]) -> list[Card]:
    return [card for card in cards if card.mig is None]
