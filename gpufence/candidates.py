"""
The cards a pod might meet, before a scheduler has chosen and after.

Which nodes it allows is told by nodeSelector and required node affinity. Taints are left out on
purpose: ignoring them only adds candidates, and every value before binding is the smallest over all
of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.dialects import ADVERTISED_AS, CARD_KEYS
from gpufence.dialects.mig import profile_of
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.quantity import MIB
from gpufence.shape import Object, as_list, as_object, as_text, objects, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod


_ZERO = ("0", 0)
_MOST_DIGITS = 63
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


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
    Return the GPU resources of a pod under the names by which nodes advertise them; a zero asks
    for nothing.
    """
    return frozenset(
        [
            ADVERTISED_AS.get(resource, resource)
            for container in pod.containers
            for resource, value in container.gpu.items()
            if value not in _ZERO
        ]
    )


def candidate_cards(
    pod: Pod, nodes: Iterable[GpuNode], default: CandidateCard
) -> tuple[CandidateCard, ...]:
    """
    Return every different card the pod might meet on these nodes.

    A node that does not tell its cards adds the size the scheduler wrote on the pod, else the
    operator's default card; where there is no node at all, the default stands alone.
    """
    different: dict[CandidateCard, None] = {}
    for node in nodes:
        cards = usable_cards(pod, node)
        for card in cards:
            different[CandidateCard(node.units, card.memory_bytes, card.compute_capability)] = None
        if not cards:
            memory = _by_scheduler(pod, node) or default.memory_bytes
            different[CandidateCard(node.units, memory, default.compute_capability)] = None
    return tuple(different) or (default,)


def usable_cards(pod: Pod, node: GpuNode) -> tuple[Card, ...]:
    """
    Return the cards a pod may meet there: its MIG profile's instances, or whole cards, and only the
    assigned one where a scheduler has chosen.

    Where every card is cut, whoever asks for a card gets an instance (the device plugin's MIG
    strategy "single"). Resource names say `1g.10gb.me` where the driver says `1g.10gb+me`.
    """
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


def allows(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """
    Return whether a pod may run on the node of this name and these labels.
    """
    if pod.node_name:
        return pod.node_name == name
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    terms = required_terms(pod)
    return terms is None or any(_matches(term, name, labels) for term in terms)


def required_terms(pod: Pod) -> list[Object] | None:
    """
    Return the terms of which a node must match one; None where the pod requires nothing.
    """
    required = pod.affinity.get(_REQUIRED)
    if required is None:
        return None
    return objects(as_object(required, _REQUIRED).get("nodeSelectorTerms"), _REQUIRED)


def holds(requirement: Object, labels: Mapping[str, str]) -> bool:
    """
    Return whether one requirement holds for a node of these labels.
    """
    key = as_text(requirement.get("key"), "key")
    values = [as_text(item, "values") for item in as_list(requirement.get("values"), "values")]
    value = labels.get(key)
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compared(value, values) > 0
        case "Lt":
            return _compared(value, values) < 0
        case _:
            return False


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """
    Return whether every requirement of a term holds; an empty term matches no node.
    """
    by_label = objects(term.get("matchExpressions"), "matchExpressions")
    by_field = objects(term.get("matchFields"), "matchFields")
    fields = {"metadata.name": name}
    return bool(by_label or by_field) and (
        all(holds(item, labels) for item in by_label)
        and all(holds(item, fields) for item in by_field)
    )


def _compared(value: str | None, bounds: list[str]) -> int:
    """
    Compare as Kubernetes does, whole numbers of 64 bits only; 0 (neither) where one is none.
    """
    left = _whole(value or "")
    right = _whole(bounds[0] if len(bounds) == 1 else "")
    return left - right if left is not None and right is not None else 0


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
