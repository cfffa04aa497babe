"""
What is known of one collection that changes all the time, kept true by a reflector.

Unlike `kube.Cache` it is changed in place: copying fifty thousand pods for each that changes would
take a core. Whoever wants them all gets a list, the same one until something changes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kube import ChangeType

T = TypeVar("T")


class LiveStore(Generic[T]):
    """Objects by key, the handler of a reflector; None stands for one that is of no concern."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._shown: Mapping[str, T] | None = None
        self.changes = 0

    @property
    def items(self) -> Mapping[str, T]:
        """Return what is known, as a mapping that never changes."""
        with self._lock:
            if self._shown is None:
                self._shown = dict(self._items)
            return self._shown

    def replace(self, objects: Sequence[tuple[str, T | None]]) -> None:
        with self._lock:
            before = self._items
            # Equal ones stay the very same objects, so that nobody reads them again.
            self._items = {
                key: before[key] if before.get(key) == new else new
                for key, new in objects
                if new is not None
            }
            self._shown = None
            self.changes += 1

    def apply(self, change: ChangeType, item: tuple[str, T | None]) -> None:
        key, new = item
        with self._lock:
            known = self._items.get(key)
            if change == "DELETED" or new is None:
                if self._items.pop(key, None) is None:
                    return
            elif known == new:
                return
            else:
                self._items[key] = new
            self._shown = None
            self.changes += 1
