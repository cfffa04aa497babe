"""
What is remembered of nodes and namespaces, kept true by reflectors.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import GpuNode, read_node
from webhook.cluster.compact import compact
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpufence.dialects import Units
    from kube import JsonObject
    from kube.changes import ChangeType

_LEAST_PAUSE_SECONDS = 0.02
_PAUSES_PER_BUILD = 20  # so that building never takes more than a twentieth of the time

NamedNode = tuple[str, GpuNode | None]
NamedWords = tuple[str, dict[str, str]]


class NodeCache:
    """
    The GPU nodes by name, and the fleet made of them.

    The fleet is made anew when it is asked for after a change, but not again and again while a
    thousand nodes report: until the pause is over, the last one serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._nodes: dict[str, GpuNode] = {}
        self._lock = threading.Lock()
        self._fleet = Fleet(())
        self._changed = False
        self._next_build = 0.0

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, name: str) -> GpuNode | None:
        return self._nodes.get(name)

    def replace(self, objects: Sequence[NamedNode]) -> None:
        nodes = {name: node for name, node in objects if node is not None}
        with self._lock:
            self._nodes = nodes
            self._changed = True
            self._next_build = 0.0

    def apply(self, change: ChangeType, item: NamedNode) -> None:
        name, node = item
        if change == "DELETED":
            node = None
        with self._lock:
            # Every node reports now and then, and almost never about its cards.
            if self._nodes.get(name) == node:
                return
            if node is None:
                del self._nodes[name]
            else:
                self._nodes[name] = node
            self._changed = True

    def fleet(self) -> Fleet:
        now = self._monotonic()
        if not self._changed or now < self._next_build:
            return self._fleet
        with self._lock:
            self._changed = False
            nodes = tuple(self._nodes.values())
        self._fleet = Fleet(nodes)
        done = self._monotonic()
        self._next_build = done + max(_LEAST_PAUSE_SECONDS, (done - now) * _PAUSES_PER_BUILD)
        return self._fleet


class NamespaceCache:
    """
    The words of ours that fenced namespaces carry, by name.
    """

    def __init__(self) -> None:
        self._words: dict[str, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._words)

    def get(self, name: str) -> Mapping[str, str] | None:
        return self._words.get(name)

    def replace(self, objects: Sequence[NamedWords]) -> None:
        self._words = dict(objects)

    def apply(self, change: ChangeType, item: NamedWords) -> None:
        name, words = item
        if change == "DELETED":
            self._words.pop(name, None)
        else:
            self._words[name] = words


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


def keep_namespace(namespace: JsonObject) -> NamedWords:
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
