"""
PURE. Nodes in little memory: thousands of them say mostly the same.

A dict of fifty labels takes 5 KB, five thousand of them a third of all the memory the webhook may
have. The keys of most nodes are the same, so they are held once; the values are held once each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gpufence.nodes import GpuNode

    H = TypeVar("H", bound=Hashable)

_MOST_SHARED = 8192
"""More different values than that are not worth remembering."""


class Labels(Mapping[str, str]):
    """
    Labels that share their keys with all nodes that have the same ones.
    """

    __slots__ = ("_places", "_values")

    def __init__(self, labels: Mapping[str, str]) -> None:
        keys = sorted(labels)
        self._places = _places(tuple(keys))
        self._values = tuple(_shared(labels[key]) for key in keys)

    def __getitem__(self, key: str) -> str:
        return self._values[self._places[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels):
            return self._values == other._values and self._places == other._places
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"Labels({dict(self)!r})"


def compact(node: GpuNode) -> GpuNode:
    """
    Return an equal node that shares all it can with the others.
    """
    return node._replace(
        labels=Labels(node.labels),
        resources=_shared(node.resources),
        cards=_shared(node.cards),
        units=_shared(node.units),
    )


@lru_cache(maxsize=_MOST_SHARED)
def _places(keys: tuple[str, ...]) -> Mapping[str, int]:
    return MappingProxyType({_shared(key): place for place, key in enumerate(keys)})


def _shared(value: H) -> H:
    found: H = _first_equal(value)
    return found


@lru_cache(maxsize=_MOST_SHARED, typed=True)  # values of two types can be equal tuples
def _first_equal(value: H) -> H:
    return value
