"""The cards a pod might meet on the nodes it allows, before a scheduler has chosen and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.dialects import ADVERTISED_AS, CARD_KEYS, UNLISTED
from gpufence.dialects.mig import profile_of
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from gpufence.reserves import reserve_of
from gpufence.shape import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod
    from gpufence.reserves import ByModel


_ZERO = ("0", 0)


class CandidateCard(NamedTuple):
    """
    One card a pod might meet, with the units of its node; None where nothing tells its size.
    `reserve_bytes` is what was measured of a context on such a card, None where nothing was.
    """

    units: Units
    memory_bytes: int | None
    compute_capability: tuple[int, int] | None = None
    reserve_bytes: int | None = None


def wanted_resources(pod: Pod) -> frozenset[str]:
    """
    Return the GPU resources of a pod under the names by which nodes advertise them; a zero asks
    for nothing.
    """
    return frozenset(
        [
            ADVERTISED_AS.get(resource, resource)
            for container in pod.containers
            for resource, value in container.gpu.items()
            if value not in _ZERO and resource not in UNLISTED
        ]
    )


def candidate_cards(
    pod: Pod, nodes: Iterable[GpuNode], default: CandidateCard, measured: ByModel = ()
) -> tuple[CandidateCard, ...]:
    """
    Return every different card the pod might meet on these nodes; of some models `measured` has
    what a context takes there.

    A card of which only bounds are known is both its smallest and its largest. A node that does not
    tell its cards adds the size the scheduler wrote on the pod, else the
    operator's default card; where there is no node at all, the default stands alone.
    """
    different: dict[CandidateCard, None] = {}
    for node in nodes:
        cards = usable_cards(pod, node)
        for card in cards:
            reserve = reserve_of(card.full_model, measured) if measured else None
            for size in dict.fromkeys((card.memory_bytes, card.most_bytes or card.memory_bytes)):
                found = CandidateCard(node.units, size, card.compute_capability, reserve)
                different[found] = None
        if not cards:
            memory = _by_scheduler(pod, node) or default.memory_bytes
            different[CandidateCard(node.units, memory, default.compute_capability)] = None
    return tuple(different) or (default,)


def usable_cards(pod: Pod, node: GpuNode) -> tuple[Card, ...]:
    """
    Return the cards a pod may meet there: its MIG profile's instances, or whole cards, and only the
    assigned one where a scheduler has chosen: those of its resource claims, if these are known.

    Where every card is cut, a pod that asks for a card gets an instance (the device plugin's MIG
    strategy "single"). Resource names say `1g.10gb.me` where the driver says `1g.10gb+me`.
    """
    allocated = [device.card for device in pod.devices if device.card is not None]
    if allocated:
        stated = {card.uuid: card for card in node.cards}
        return tuple(dict.fromkeys([stated.get(card.uuid, card) for card in allocated]))
    instances = tuple([card for card in node.cards if card.mig])
    slices = [name for name in wanted_resources(pod) if name.startswith(names.NVIDIA_MIG_PREFIX)]
    if slices:
        profile = profile_of(min(slices))
        return tuple(
            card for card in instances if card.mig and card.mig.profile.replace("+", ".") == profile
        )
    index = assigned_card(pod)
    parents = {card.mig.parent for card in instances if card.mig}
    whole = tuple([card for card in node.cards if not card.mig and card.uuid not in parents])
    assigned = tuple([card for card in whole if card.index == index])
    return assigned or whole or instances


def assigned_card(pod: Pod) -> int | None:
    """Return the index of the card a scheduler has assigned, once it has; None where it has not."""
    for key in CARD_KEYS:
        text = pod.annotations.get(key)
        if text is not None:
            try:
                return whole_number(text, key, least=0)
            except InvalidError:
                return None
    return None


def _by_scheduler(pod: Pod, node: GpuNode) -> int | None:
    """Return the card's size as gpushare's extender wrote it before binding, in the node's unit."""
    text = pod.annotations.get(names.GPUSHARE_CARD_UNITS)
    if text is None or node.units.gpushare_bytes is None:
        return None
    try:
        units = whole_number(text, names.GPUSHARE_CARD_UNITS, most=LARGEST_CARD // MIB)
    except InvalidError:
        return None
    size = units * node.units.gpushare_bytes
    return size if size <= LARGEST_CARD else None
