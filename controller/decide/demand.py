"""
PURE. Who waits for a GPU, and whose release would let them in.

What else than resources, taints, selectors and node affinity decides where a pod may run is not
worked out: such a pod is never said to wait for somebody, and still keeps others from coming back.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.room import NodeLeft, nodes_left
from gpufence.idle import ReleasePhase

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.decide.room import Places
    from controller.model import ClusterState, OwnerKey, OwnerState, PodState
    from controller.rules import ReleaseRules

_MOST_WAITERS: Final = 32
"""Whose way is looked for in one pass: those who have waited longest."""

_MOST_TRIES: Final = 300
"""Sets of owners of one size that are tried on a node; beyond, the set is one of which none can be
left out."""

_MOST_TRIES_IN_A_PASS: Final = 20_000
"""The same of all sets in one pass: a third of a second. Beyond, no owner goes sooner."""

_LEAVING: Final = (ReleasePhase.RELEASING, ReleasePhase.RELEASED)


class _Tries:
    """How many sets of owners may still be tried, of which each waiter has an equal share."""

    def __init__(self) -> None:
        self._left = self._share = _MOST_TRIES_IN_A_PASS

    def begin(self, waiters: int) -> None:
        """Begin with the first of so many waiters that are left."""
        self._share = self._left // waiters

    def take(self, number: int, most: int = _MOST_TRIES) -> bool:
        """Return whether so many more may be tried, and count them."""
        if number > min(most, self._share):
            return False
        self._left -= number
        self._share -= number
        return True


class Contention(NamedTuple):
    """A pod that waits, and the owners whose release lets it in, all of them together."""

    waiter: PodState
    owners: tuple[OwnerKey, ...]


def waiting_pods(world: ClusterState, rules: ReleaseRules) -> list[PodState]:
    """
    Return the pods that ask for GPUs and that no node has taken for some time, the longest first.
    """
    found = [
        (pod.waiting_since, pod.namespace, pod.name, pod)
        for pod in world.pods
        if pod.gpu is not None
        and not pod.terminating
        and not pod.node
        and pod.waiting_since is not None
        and world.now - pod.waiting_since >= rules.waiting_seconds
    ]
    return [pod for *_, pod in sorted(found, key=lambda item: item[:3])]


def contentions(
    world: ClusterState, waiters: Iterable[PodState], idle: Sequence[OwnerState]
) -> list[Contention]:
    """
    Return for each pod that waits the smallest set of idle owners whose release lets it in; `idle`
    is in the order in which they go. A pod that fits without anybody's release waits for nobody.
    """
    left = nodes_left(world, _leaving(world))
    tries = _Tries()
    able = list(idle)
    found: list[Contention] = []
    hopeless: list[PodState] = []
    known = [pod for pod in waiters if _is_plain(pod)][:_MOST_WAITERS]
    for place, waiter in enumerate(known):
        tries.begin(len(known) - place)
        free = next((node for node in left.values() if node.fitting(waiter)), None)
        if free is not None:
            free.put(waiter)
            continue
        others = [owner for owner in able if owner.key != waiter.owner]
        known_already = any(_is_alike(waiter, other) for other in hopeless)
        best = None if known_already else _best(left, waiter, others, tries)
        if best is None:
            hopeless.append(waiter)
            continue
        node, group = best
        for pod in _pods_of(group):
            if pod.node in left:
                left[pod.node].take(pod)
        node.put(waiter)
        able = [owner for owner in able if owner not in group]
        found.append(Contention(waiter, tuple(owner.key for owner in group)))
    return found


def may_come_back(owner: OwnerState, places: Places, waiters: Iterable[PodState]) -> str:
    """Return what stands against bringing an owner back, nothing if it would be in nobody's way."""
    template, note = owner.template, owner.note
    if template is None or note is None:
        return "nobody can tell what its pods would ask for"
    nodes = [NodeLeft(node) for node in places.world.nodes.values()]
    allowed = [node for node in nodes if node.permits(template)]
    for waiter in waiters:
        if any(node.fitting(waiter) for node in allowed):
            return f"{waiter.namespace}/{waiter.name} waits for a place that it might take"
    fitting = places.room(template)
    if fitting < note.replicas:
        return f"{fitting} of its {note.replicas} replicas would fit"
    return ""


def _best(
    left: dict[str, NodeLeft], waiter: PodState, able: Sequence[OwnerState], tries: _Tries
) -> tuple[NodeLeft, tuple[OwnerState, ...]] | None:
    """
    Return the node where the fewest owners, and of these the fewest pods, stand in the way, of as
    many nodes as there is time for, those first that lack the least.
    """
    here: dict[str, list[OwnerState]] = {}
    for owner in able:
        for name in {pod.node for pod in owner.pods}:
            here.setdefault(name, []).append(owner)
    nodes = [node for name, node in left.items() if name in here and node.permits(waiter)]
    nodes.sort(key=lambda node: node.lacking(waiter))
    found = [
        (node, group)
        for node in nodes
        if (group := _smallest(node, waiter, here[node.node.name], tries))
    ]
    return min(found, key=lambda item: (len(item[1]), _number_of_pods(item[1])), default=None)


def _smallest(
    node: NodeLeft, waiter: PodState, here: Sequence[OwnerState], tries: _Tries
) -> tuple[OwnerState, ...]:
    """
    Return the smallest set of owners without whom a pod fits on a node; none if it never does, or
    there is no time left to tell.
    """
    if not tries.take(1) or not _fits_without(node, waiter, here):
        return ()
    for size in range(1, len(here)):
        if not tries.take(comb(len(here), size)):
            break
        able = [group for group in combinations(here, size) if _fits_without(node, waiter, group)]
        if able:
            return min(able, key=_number_of_pods)
    if not tries.take(len(here), most=_MOST_TRIES_IN_A_PASS):
        return ()
    needed = list(here)
    for owner in reversed(here):
        rest = [other for other in needed if other is not owner]
        if _fits_without(node, waiter, rest):
            needed = rest
    return tuple(needed)


def _fits_without(node: NodeLeft, waiter: PodState, owners: Iterable[OwnerState]) -> bool:
    pods = [pod for pod in _pods_of(owners) if pod.node == node.node.name]
    taken = [pod for pod in pods if node.take(pod)]
    fits = node.fitting(waiter) > 0
    for pod in taken:
        node.put(pod)
    return fits


def _pods_of(owners: Iterable[OwnerState]) -> list[PodState]:
    return [pod for owner in owners for pod in owner.pods if pod.node]


def _number_of_pods(owners: Iterable[OwnerState]) -> int:
    return len(_pods_of(owners))


def _leaving(world: ClusterState) -> frozenset[str]:
    """Return the pods whose place is free soon: nobody else need go for it."""
    going = {
        owner.key
        for owner in world.owners.values()
        if owner.replicas == 0 or (owner.note is not None and owner.note.phase in _LEAVING)
    }
    return frozenset(pod.uid for pod in world.pods if pod.terminating or pod.owner in going)


def _is_alike(one: PodState, other: PodState) -> bool:
    """Return whether two pods of an owner ask for the same place."""
    return (one.owner, one.requests, one.tolerations, one.gpu) == (
        other.owner,
        other.requests,
        other.tolerations,
        other.gpu,
    )


def _is_plain(pod: PodState) -> bool:
    """Return whether everything that decides where a pod may run is worked out here."""
    return not pod.placement and pod.gpu is not None and not pod.gpu.claims
