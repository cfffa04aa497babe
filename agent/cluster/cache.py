"""
What is known of one collection, kept true by a reflector.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube.changes import ChangeType

T = TypeVar("T")


class Cache(Generic[T]):
    """
    Objects by key. `items` is never changed, only replaced, and only by something else: whoever has
    seen it needs no lock, and sees by its identity whether there is news. `known` once the whole
    collection has been read, which is news too.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self.items: Mapping[str, T] = {}
        self.known = False

    def replace(self, objects: Sequence[tuple[str, T]]) -> None:
        with self._lock:
            known = self.items
            # Equal ones stay the very same objects, so that nobody reads them again.
            items = {key: known[key] if known.get(key) == new else new for key, new in objects}
            if self.known and items == known:
                return
            self.items, self.known = items, True
        self._tell()

    def apply(self, change: ChangeType, item: tuple[str, T]) -> None:
        key, new = item
        with self._lock:
            if change == "DELETED":
                if key not in self.items:
                    return
                self.items = {other: old for other, old in self.items.items() if other != key}
            elif key in self.items and self.items[key] == new:
                return
            else:
                self.items = {**self.items, key: new}
        self._tell()

    def _tell(self) -> None:
        if self._on_change is not None:
            self._on_change()
