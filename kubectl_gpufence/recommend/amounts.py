"""
PURE. A target in the words of the system that counts a pod's memory: its own resource in its own
unit, rounded up to whole ones, or gpufence's annotation where nothing else says an amount.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.dialects import SPECS
from gpufence.quantity import write_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.dialects import Units
    from gpufence.pods import Container, Pod

_HUNDREDTHS: Final = 100
_UNIT_BYTES: Final = {key: unit for spec in SPECS for key, unit in spec.unit_bytes.items()}
_PERCENTAGES: Final = frozenset(resource for spec in SPECS for resource in spec.percentages)


class Wanted(NamedTuple):
    """
    What a template should say: resources by container, annotations of the pod, and for which
    containers no way is known to say it, with the reason.
    """

    resources: Mapping[str, Mapping[str, str]]
    annotations: Mapping[str, str]
    unsaid: Mapping[str, str]


class NodeWords(NamedTuple):
    """
    What numbers on pods mean on the nodes that they run on; the card's memory is None where nobody
    tells it.
    """

    units: Units
    card_bytes: int | None


def wanted(pod: Pod, targets: Mapping[str, int], nodes: NodeWords) -> Wanted:
    """
    Say the targets of a pod's containers in its own dialect. What already says so is left out.
    """
    resources: dict[str, dict[str, str]] = {}
    unsaid: dict[str, str] = {}
    undeclared = []
    asking = [item for item in pod.containers if item.gpu] or pod.containers
    for container in asking:
        if container.name in targets:
            own, why_not = _resources(container, targets[container.name], nodes)
            if why_not:
                unsaid[container.name] = why_not
            elif own:
                resources[container.name] = own
            else:
                undeclared.append(container.name)
    told = {item.name: targets[item.name] for item in asking if item.name in targets}
    annotations = _tightened(pod, told, complete=len(told) == len(asking))
    if undeclared:
        annotations |= _kai(pod, sum(told.values()), nodes) or _granted(pod, told, asking, unsaid)
    return Wanted(
        {name: changed for name, own in resources.items() if (changed := _changed(pod, name, own))},
        {key: text for key, text in annotations.items() if pod.annotations.get(key) != text},
        unsaid,
    )


def _resources(container: Container, target: int, nodes: NodeWords) -> tuple[dict[str, str], str]:
    """
    Return the resources that hold a target, none where the container asks for no amount, and why
    they cannot be told.
    """
    for resource in container.gpu:
        if resource.startswith(names.NVIDIA_MIG_PREFIX):
            return {}, "its MIG instance is its card: choose a profile that holds the target"
        if resource in _UNIT_BYTES:
            unit = _UNIT_BYTES[resource](nodes.units)
            if unit is None:
                return {}, f"the unit of {resource} is not certain on its nodes"
            return {resource: str(-(-target // unit))}, ""
        if resource in _PERCENTAGES:
            if nodes.card_bytes is None:
                return {}, f"the memory of its card is not known, of which {resource} is a part"
            return {resource: str(_hundredths(target, nodes.card_bytes))}, ""
    if container.claims and not container.gpu:
        return {}, "its resource claim is its amount: write the target into the claim's capacity"
    return {}, ""


def _kai(pod: Pod, target: int, nodes: NodeWords) -> dict[str, str]:
    """
    Return KAI's own annotation where the pod speaks it, nothing where its card's memory is unknown.
    """
    if names.KAI_MEMORY in pod.annotations:
        unit = _UNIT_BYTES[names.KAI_MEMORY](nodes.units) or 1
        return {names.KAI_MEMORY: str(-(-target // unit))}
    if names.KAI_FRACTION in pod.annotations and nodes.card_bytes is not None:
        share = min(_hundredths(target, nodes.card_bytes), _HUNDREDTHS - 1)
        return {names.KAI_FRACTION: f"0.{share:02}"}
    return {}


def _tightened(pod: Pod, targets: Mapping[str, int], *, complete: bool) -> dict[str, str]:
    """
    Return what annotations of ours that are there should say: beside an amount the smaller counts.
    """
    own = {f"{names.MEMORY_OF_CONTAINER}{name}": target for name, target in targets.items()}
    if complete:
        own[names.MEMORY] = sum(targets.values())
    return {key: write_bytes(target) for key, target in own.items() if key in pod.annotations}


def _granted(
    pod: Pod, targets: Mapping[str, int], asking: Sequence[Container], unsaid: dict[str, str]
) -> dict[str, str]:
    """
    Return annotations that grant amounts where nothing says one: to all containers, since those
    without would make the others unreadable.
    """
    keys = {name: f"{names.MEMORY_OF_CONTAINER}{name}" for name in targets}
    if names.MEMORY in pod.annotations or any(key in pod.annotations for key in keys.values()):
        return {}
    missing = [item.name for item in asking if item.name not in targets]
    if len(asking) > 1 and missing:
        unsaid.update(dict.fromkeys(targets, f"container {missing[0]} has no target beside it"))
        return {}
    if len(asking) == 1:
        return {names.MEMORY: write_bytes(sum(targets.values()))}
    return {keys[name]: write_bytes(target) for name, target in targets.items()}


def _changed(pod: Pod, name: str, own: Mapping[str, str]) -> dict[str, str]:
    said = next(item.gpu for item in pod.containers if item.name == name)
    return {key: text for key, text in own.items() if str(said[key]) != text}


def _hundredths(target: int, card_bytes: int) -> int:
    return min(-(-target * _HUNDREDTHS // card_bytes), _HUNDREDTHS)
