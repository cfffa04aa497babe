"""
What is remembered of nodes and namespaces, kept true by reflectors.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import read_node
from kube import Cache
from webhook.cluster.compact import compact
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpufence.dialects import Units
    from gpufence.nodes import GpuNode
    from kube import ChangeType, JsonObject

_LEAST_PAUSE_SECONDS = 0.02
_PAUSES_PER_BUILD = 20  # so that building never takes more than a twentieth of the time

NamedNode: TypeAlias = "tuple[str, GpuNode | None]"
NamedAnnotations: TypeAlias = "tuple[str, Mapping[str, str]]"


class NodeCache(Cache["GpuNode"]):
    """
    The GPU nodes by name, and the fleet made of them.

    The fleet is made anew when it is asked for after a change, but not again and again while a
    thousand nodes report: until the pause is over, the last one serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(self._note_change)
        self._monotonic = monotonic
        self._fleet = Fleet(())
        self._changed = False
        self._next_build = 0.0

    def replace(self, objects: Sequence[NamedNode]) -> None:
        super().replace([(name, node) for name, node in objects if node is not None])
        self._next_build = 0.0

    def apply(self, change: ChangeType, item: NamedNode) -> None:
        name, node = item
        if node is None:
            super().forget(name)
        else:
            super().apply(change, (name, node))

    def fleet(self) -> Fleet:
        now = self._monotonic()
        if not self._changed or now < self._next_build:
            return self._fleet
        self._changed = False
        self._fleet = Fleet(self.items.values())
        done = self._monotonic()
        self._next_build = done + max(_LEAST_PAUSE_SECONDS, (done - now) * _PAUSES_PER_BUILD)
        return self._fleet

    def _note_change(self) -> None:
        self._changed = True


def keep_node(node: JsonObject, defaults: Units) -> NamedNode:
    """
    Remember of a node only what limits are computed from; its name alone if it offers no GPU.

    A node that cannot be read at all counts as one without GPUs: it must not stop the others.
    """
    name = _name(node)
    try:
        found = read_node(node, defaults)
    except InvalidError:
        return name, None
    return name, None if found is None else compact(found)


def keep_namespace(namespace: JsonObject) -> NamedAnnotations:
    """
    Remember of a namespace only the annotations that are ours.
    """
    annotations = namespace.get("metadata", {}).get("annotations") or {}
    return _name(namespace), {
        key: value
        for key, value in annotations.items()
        if key.startswith(names.PREFIX) and isinstance(value, str)
    }


def _name(item: JsonObject) -> str:
    return str(item.get("metadata", {}).get("name", ""))
