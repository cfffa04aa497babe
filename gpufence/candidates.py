"""
The cards a pod might meet, before a scheduler has chosen and after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.affinity import allows
from gpufence.dialects import ADVERTISED_AS, CARD_KEYS, is_gpu_resource
from gpufence.dialects.mig import profile_of as mig_profile_of
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.nodes import GpuNode, usable_cards
from gpufence.quantity import MIB
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.pods import Pod


_ZERO = ("0", 0)


class CandidateCard(NamedTuple):
    """
    One card a pod might meet, with the units of its node; None where nothing tells its size.
    """

    units: Units
    memory_bytes: int | None
    compute_capability: tuple[int, int] | None = None


def candidate_nodes(pod: Pod, nodes: Iterable[GpuNode]) -> Iterator[GpuNode]:
    """
    Yield the nodes that offer every GPU resource of the pod and that its selectors allow.
    """
    wanted = wanted_resources(pod)
    for node in nodes:
        if wanted <= node.resources and allows(pod, node.name, node.labels):
            yield node


def wanted_resources(pod: Pod) -> frozenset[str]:
    """
    Return the GPU resources of a pod under the names by which nodes advertise them.
    """
    return frozenset([ADVERTISED_AS.get(resource, resource) for resource in _wanted(pod)])


def candidate_cards(
    pod: Pod, nodes: Iterable[GpuNode], default: CandidateCard
) -> tuple[CandidateCard, ...]:
    """
    Return every different card the pod might meet on these nodes.

    A node that does not tell its cards adds the size the scheduler wrote on the pod, else the
    operator's default card; where there is no node at all, the default stands alone.
    """
    profile = profile_of(pod)
    found: dict[CandidateCard, None] = {}
    for node in nodes:
        cards = usable_cards(node, profile, assigned_card(pod))
        for card in cards:
            found[_choice(node, card)] = None
        if not cards:
            memory = _by_scheduler(pod, node) or default.memory_bytes
            found[CandidateCard(node.units, memory, default.compute_capability)] = None
    return tuple(found) or (default,)


def assigned_card(pod: Pod) -> int | None:
    """
    Return the index of the card a scheduler has assigned, once it has; None where it has not.
    """
    for key in CARD_KEYS:
        text = pod.annotations.get(key)
        if text is not None:
            try:
                return whole_number(text, key, least=0)
            except InvalidError:
                return None
    return None


def _by_scheduler(pod: Pod, node: GpuNode) -> int | None:
    """
    Return the card's size as gpushare's extender wrote it before binding, in the node's unit.
    """
    text = pod.annotations.get(names.GPUSHARE_CARD_UNITS)
    if text is None or node.units.gpushare_bytes is None:
        return None
    try:
        units = whole_number(text, names.GPUSHARE_CARD_UNITS, most=LARGEST_CARD // MIB)
    except InvalidError:
        return None
    size = units * node.units.gpushare_bytes
    return size if size <= LARGEST_CARD else None


def _choice(node: GpuNode, card: Card) -> CandidateCard:
    return CandidateCard(node.units, card.memory_bytes, card.compute_capability)


def profile_of(pod: Pod) -> str:
    """
    Return the MIG profile a pod asks for; empty where it asks for cards.
    """
    return next(filter(None, map(mig_profile_of, _wanted(pod))), "")


def _wanted(pod: Pod) -> Iterator[str]:
    """
    Yield the GPU resources the pod asks for; a zero asks for nothing.
    """
    for container in pod.containers:
        for resource, value in container.limits.items():
            if is_gpu_resource(resource) and value not in _ZERO:
                yield resource
