"""What a node says about its cards and units."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.cards import NodeCards, cards_by_labels, label_number, read_cards
from gpufence.dialects import NODE_RESOURCES, PREFIXES, Units, gpushare, volcano
from gpufence.errors import GpufenceError, InvalidError
from gpufence.quantity import UNIT_BYTES, read_count
from gpufence.shape import (
    Object,
    as_list,
    as_object,
    as_text,
    as_texts,
    objects,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.cards import Card
    from gpufence.pods import Pod
    from gpufence.shape import Object


class GpuNode(NamedTuple):
    """
    A node as far as its GPUs go; no cards means that nothing tells their size. `driver` is the
    driver's version where its own agent states the cards, as NVML gave them.
    """

    name: str
    labels: Mapping[str, str]
    resources: frozenset[str]
    cards: tuple[Card, ...]
    units: Units
    driver: str = ""


def read_node(node: Object, defaults: Units) -> GpuNode | None:
    """
    Read a Node, or return None for one that offers no GPU resource and of whose cards neither its
    agent nor its labels say anything; where devices come by claims (DRA) a node lists no resource,
    and a node that was born a moment ago none yet.

    `defaults` are the operator's settings, for units that the node leaves open. What cannot be read
    counts as not there: a broken label on one node must not stop admission for all.
    """
    return node_stating(node, defaults, stated_cards(node))


def node_stating(node: Object, defaults: Units, stated: NodeCards | None) -> GpuNode | None:
    """Do the same for whoever has read what the Node's own agent wrote."""
    metadata = as_object(node.get("metadata"), "metadata")
    labels = as_texts(metadata.get("labels"), "metadata.labels")
    offered = figures_of(node, "allocatable")
    stating = stated if stated is not None and stated.cards else None
    cards = cards_by_labels(labels) if stating is None else stating.cards
    if not offered and not cards:
        return None
    return GpuNode(
        name=as_text(metadata.get("name"), "metadata.name"),
        labels=labels,
        resources=frozenset(offered),
        cards=cards,
        units=units_of(stated, node_figures(node), cards, labels, defaults),
        driver="" if stating is None else stating.driver,
    )


def stated_cards(node: Object) -> NodeCards | None:
    """
    Read what the Node's own agent wrote about its cards; None where there is nothing readable.
    """
    try:
        metadata = as_object(node.get("metadata"), "metadata")
        annotations = as_object(metadata.get("annotations"), "metadata.annotations")
        text = annotations.get(names.CARDS)
        return read_cards(text) if isinstance(text, str) else None
    except GpufenceError:
        return None


def node_figures(node: Object) -> dict[str, int]:
    """
    Read how much of each GPU resource a node has.

    Capacity counts before allocatable: a broken device leaves that, and the unit does not change.
    """
    return figures_of(node, "allocatable") | figures_of(node, "capacity")


def figures_of(node: Object, part: str) -> dict[str, int]:
    """Read how much of each GPU resource a node states in a part of its status."""
    status = as_object(node.get("status"), "status")
    offered = {}
    for resource, value in as_object(status.get(part), f"status.{part}").items():
        if resource in NODE_RESOURCES or resource.startswith(PREFIXES):
            try:
                count = read_count(value, resource)
            except InvalidError:
                continue
            if count:
                offered[resource] = count
    return offered


def units_of(
    stated: NodeCards | None,
    figures: Mapping[str, int],
    cards: tuple[Card, ...],
    labels: Mapping[str, str],
    defaults: Units,
) -> Units:
    """
    Return what amounts mean on a node: as its agent states it, else as its figures tell beside
    cards whose size is certain, else as the operator says.
    """
    clients, strategy = _sharing(labels)
    cards = tuple([card for card in cards if card.most_bytes is None])
    factor = stated.factor if stated is not None else None
    return Units(
        gpushare_bytes=_gpushare_bytes(stated, figures, cards, defaults),
        volcano_factor=factor or volcano.factor_of(figures, cards) or defaults.volcano_factor,
        clients=clients or defaults.clients,
        driver_caps=strategy == "mps" or gpushare.is_isolating(labels),
    )


def _gpushare_bytes(
    stated: NodeCards | None, figures: Mapping[str, int], cards: tuple[Card, ...], defaults: Units
) -> int | None:
    unit = dict(stated.units).get(names.GPUSHARE_MEMORY) if stated is not None else None
    if unit is not None:
        return UNIT_BYTES.get(unit)
    if names.GPUSHARE_MEMORY in figures and cards:
        unit = gpushare.unit_of(figures, cards)
        return None if unit is None else UNIT_BYTES[unit]
    return defaults.gpushare_bytes


def _sharing(labels: Mapping[str, str]) -> tuple[int | None, str]:
    """
    Return how many pods share a card there and by what means, as GKE or the device plugin say it.
    """
    clients = label_number(labels, names.GKE_CLIENTS)
    strategy = labels.get(names.GKE_SHARING, labels.get(names.GFD_SHARING, ""))
    return clients or label_number(labels, names.GFD_REPLICAS), strategy.lower().replace("_", "-")


NAME_FIELD: Final = "metadata.name"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_DIGITS: Final = 63
_MOST_NAME: Final = 253  # characters of an object's name
_HASH: Final = 10
_MOST_REQUIREMENTS: Final = 256
"""What is read of what a pod requires of its node."""

_REPELLING: Final = ("NoSchedule", "NoExecute")


def configmap_name(prefix: str, node: str) -> str:
    """Return the name of an object that a node's agent keeps; a long one ends in a hash."""
    name = f"{prefix}{node}"
    if len(name) <= _MOST_NAME:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:_HASH]
    return f"{name[: _MOST_NAME - _HASH - 1].rstrip('-.')}-{digest}"


def kept_configmap(
    name: str, label: str, data: Mapping[str, str], version: str, node: tuple[str, str] = ("", "")
) -> dict[str, object]:
    """
    Make such an object whole; `version` is the one it replaces, empty for a new one. It goes with
    the `node` of this name and UID, where that is known.
    """
    about: dict[str, object] = {"resourceVersion": version} if version else {}
    if node[1]:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node[0], "uid": node[1]}
        about["ownerReferences"] = [owner]
    labels = {"app.kubernetes.io/name": label, "app.kubernetes.io/part-of": "gpufence"}
    metadata = {"name": name, "labels": labels, **about}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def allows(pod: Pod, name: str, labels: Mapping[str, str]) -> bool:
    """
    Return whether a pod's nodeSelector and required node affinity allow a node; who requires too
    much to be read is allowed none.

    Raises:
        InvalidError: the affinity is none.
    """
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    required = pod.affinity.get(REQUIRED)
    if required is None:
        return True
    terms = objects(as_object(required, REQUIRED).get("nodeSelectorTerms"), REQUIRED)
    return not too_many(terms) and any(_matches(term, name, labels) for term in terms)


def too_many(terms: Iterable[Object]) -> bool:
    """Return whether terms of an affinity require more than anybody reads."""
    fields = ("matchExpressions", "matchFields")
    required = sum(1 + sum(len(as_list(term.get(key), key)) for key in fields) for term in terms)
    return required > _MOST_REQUIREMENTS


def holds(operator: object, value: str | None, bounds: tuple[str, ...]) -> bool:
    """Return whether a label's value, None where it is absent, is what an operator asks for."""
    match operator:
        case "In":
            return value in bounds
        case "NotIn":
            return value not in bounds
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compared(value, bounds) > 0
        case "Lt":
            return _compared(value, bounds) < 0
        case _:
            return False


def tolerates(
    tolerations: Iterable[Mapping[str, str]], taints: Iterable[Mapping[str, str]]
) -> bool:
    """Return whether none of a node's taints keeps away a pod with these tolerations."""
    known = tuple(tolerations)
    return all(
        any(_covers(toleration, taint) for toleration in known)
        for taint in taints
        if taint.get("effect") in _REPELLING
    )


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether every requirement of a term holds; an empty term matches no node."""
    by_label = objects(term.get("matchExpressions"), "matchExpressions")
    by_field = objects(term.get("matchFields"), "matchFields")
    return bool(by_label or by_field) and (
        all(_requires(item, labels) for item in by_label)
        and all(_requires(item, {NAME_FIELD: name}) for item in by_field)
    )


def _requires(requirement: Object, known: Mapping[str, str]) -> bool:
    value = known.get(as_text(requirement.get("key"), "key"))
    return holds(requirement.get("operator"), value, texts(requirement.get("values"), "values"))


def _covers(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint.get("key"))
    same = toleration.get("value") or "", taint.get("value") or ""
    return key == taint.get("key") and same[0] == same[1]


def _compared(value: str | None, bounds: tuple[str, ...]) -> int:
    """Compare as Kubernetes does, whole numbers of 64 bits only; 0 (neither) where one is none."""
    left = _whole(value or "")
    right = _whole(bounds[0] if len(bounds) == 1 else "")
    return left - right if left is not None and right is not None else 0


def _whole(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
