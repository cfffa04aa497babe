"""
PURE. Which pods wait for a GPU, and which idle owner's GPUs they wait for.

A pod waits for an owner if, on one node where it may run, it asks of each GPU resource no more than
that owner holds there and is free. Cores, memory of the host and other rules of the scheduler do
not count, nor do owners that would have to go together: docs/idle.md says what that costs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.decide.room import NodeLeft, nodes_left
from gpufence.idle import ReleasePhase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from controller.decide.room import Places
    from controller.model import ClusterState, OwnerKey, OwnerState, PodState
    from controller.rules import ReleaseRules

_MOST_WAITERS: Final = 32
"""The pods that are looked at in one pass: those that have waited longest."""

_LEAVING: Final = (ReleasePhase.RELEASING, ReleasePhase.RELEASED)


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


def waiting_pods(world: ClusterState, rules: ReleaseRules) -> list[PodState]:
    """Return the pods that ask for GPUs and have been unschedulable for long, the longest first."""
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
        if any(_is_alike(waiter, other) for other in hopeless):
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


def may_come_back(owner: OwnerState, places: Places, waiters: Iterable[PodState]) -> str:
    """Return what stands against bringing an owner back, nothing if it would be in nobody's way."""
    template, note = owner.template, owner.note
    if template is None or note is None:
        return "nobody can tell what its pods would ask for"
    nodes = [NodeLeft(node) for node in places.world.nodes.values()]
    allowed = [node for node in nodes if node.permits(template)]
    for waiter in waiters:
        if any(node.takes(waiter) for node in allowed):
            return f"{waiter.namespace}/{waiter.name} waits for a place that it might take"
    fitting = places.room(template)
    if fitting < note.replicas:
        return f"{fitting} of its {note.replicas} replicas would fit"
    return ""


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
