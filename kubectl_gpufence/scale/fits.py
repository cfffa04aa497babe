"""
PURE. How many more pods fit by what nodes offer of GPUs, where no controller answers.

It counts the GPU resources alone, card by card where an extender deals them out so; taints and
affinity are left out, a node selector is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.dialects import GPU_RESOURCES
from gpufence.errors import InvalidError
from gpufence.names import (
    GPUSHARE_CARD_INDEX,
    GPUSHARE_COUNT,
    GPUSHARE_MEMORY,
    VOLCANO_MEMORY,
    VOLCANO_NUMBER,
)
from gpufence.quantity import read_count
from gpufence.shape import Object, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BY_CARD: Final = {GPUSHARE_MEMORY: GPUSHARE_COUNT, VOLCANO_MEMORY: VOLCANO_NUMBER}


class Offer(NamedTuple):
    """What a node offers of GPU resources."""

    name: str
    amounts: Mapping[str, int]
    labels: Mapping[str, str]


class Taking(NamedTuple):
    """What a pod takes of them, or would; `card` is its index where that is known."""

    node: str
    amounts: Mapping[str, int]
    selector: Mapping[str, str]
    card: int | None = None


def offer_of(raw: Object) -> Offer | None:
    """Read a Node; None where it takes no pods, or has nothing to do with GPUs."""
    metadata = as_object(raw.get("metadata"), "metadata")
    spec = as_object(raw.get("spec"), "spec")
    status = as_object(raw.get("status"), "status")
    amounts = _amounts(as_object(status.get("allocatable"), "status.allocatable"))
    if not amounts or spec.get("unschedulable") is True:
        return None
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    return Offer(as_text(metadata.get("name"), "metadata.name"), amounts, labels)


def taking_of(metadata: Object, spec: Object) -> Taking:
    """Read a pod or the template of one."""
    amounts: dict[str, int] = {}
    for container in objects(spec.get("containers"), "spec.containers"):
        resources = as_object(container.get("resources"), "resources")
        for name, amount in _amounts(as_object(resources.get("limits"), "limits")).items():
            amounts[name] = amounts.get(name, 0) + amount
    annotations = as_texts(metadata.get("annotations"), "metadata.annotations")
    index = annotations.get(GPUSHARE_CARD_INDEX, "")
    return Taking(
        as_text(spec.get("nodeName"), "spec.nodeName"),
        amounts,
        as_texts(spec.get("nodeSelector"), "spec.nodeSelector"),
        int(index) if index.isascii() and index.isdigit() else None,
    )


def fitting(wanted: Taking, offers: Iterable[Offer], pods: Iterable[Taking]) -> int:
    """Return how many more like this one fit beside those that are there."""
    there: dict[str, list[Taking]] = {}
    for pod in pods:
        there.setdefault(pod.node, []).append(pod)
    return sum(
        _on(wanted, offer, there.get(offer.name, []))
        for offer in offers
        if wanted.selector.items() <= offer.labels.items()
    )


def _on(wanted: Taking, offer: Offer, pods: list[Taking]) -> int:
    counts = [_of(name, amount, offer, pods) for name, amount in wanted.amounts.items() if amount]
    return min(counts, default=0)


def _of(name: str, amount: int, offer: Offer, pods: list[Taking]) -> int:
    """
    Return how many fit by one resource: in the sum, and where cards share it, on each of them.
    """
    offered = offer.amounts.get(name, 0)
    taken = sum(pod.amounts.get(name, 0) for pod in pods)
    by_sum = max(offered - taken, 0) // amount
    count = offer.amounts.get(_BY_CARD.get(name, ""), 0)
    if not count:
        return by_sum
    left = [offered // count] * count
    for pod in pods:
        if pod.card is not None and pod.card < count:
            left[pod.card] -= pod.amounts.get(name, 0)
    return min(by_sum, sum(max(each, 0) // amount for each in left))


def _amounts(said: Object) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in said.items():
        if name in GPU_RESOURCES or name in _BY_CARD.values():
            try:
                found[name] = read_count(str(value), name)
            except InvalidError:
                continue
    return found
