"""
PURE. What is kept of objects that several programs watch: little, so that memory stays flat, and of
what a tenant can make long no more than makes sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import GpuNode, read_node
from kube.replies import part_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpufence.dialects import Units
    from kube.informers.interning import Interner
    from kube.replies import JsonObject

MOST_CHARACTERS: Final = 2**15
"""A text that is longer is kept as one that cannot be read."""
UNREADABLE: Final = "..."


class NamespaceView(NamedTuple):
    """The labels and annotations of a namespace that are ours."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def view_namespace(
    namespace: JsonObject, labelled: Collection[str] = ()
) -> tuple[str, NamespaceView | None]:
    """Keep the texts that are ours, of a namespace with one of these labels if any are named."""
    metadata = part_of(namespace, "metadata")
    labels = _ours(texts_of(metadata, "labels"))
    if labelled and labels.keys().isdisjoint(labelled):
        return name_of(namespace), None
    return name_of(namespace), NamespaceView(labels, _ours(texts_of(metadata, "annotations")))


def view_policy(policy: JsonObject, keys: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Keep what the kill switch's ConfigMap says under these keys."""
    data = texts_of(policy, "data")
    return name_of(policy), {key: text for key, text in data.items() if key in keys}


def view_node(
    node: JsonObject, defaults: Units, interner: Interner, *, labelled: bool = False
) -> tuple[str, GpuNode | None]:
    """
    Keep what a node says of its cards and units, of one without any GPU its name alone; one that is
    only `labelled` as having GPUs is kept for the cards that others may publish for it.

    A node that cannot be read at all counts as one without GPUs: it must not stop the others.
    """
    name = name_of(node)
    try:
        found = read_node(node, defaults) or (_labelled(node, defaults) if labelled else None)
    except InvalidError:
        return name, None
    return name, None if found is None else shared_node(found, interner)


def shared_node(node: GpuNode, interner: Interner) -> GpuNode:
    """Return an equal node that shares all it can with the others."""
    return node._replace(
        labels=interner.texts(node.labels),
        resources=interner.value(node.resources),
        cards=interner.value(node.cards),
        units=interner.value(node.units),
    )


def name_of(item: JsonObject) -> str:
    return str(part_of(item, "metadata").get("name", ""))


def _labelled(node: JsonObject, defaults: Units) -> GpuNode | None:
    labels = texts_of(part_of(node, "metadata"), "labels")
    if labels.get(names.GPU_PRESENT) != "true":
        return None
    return GpuNode(name_of(node), labels, frozenset(), (), defaults)


def _ours(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in texts.items()
        if key.startswith(names.PREFIX)
    }
