"""What is known of one collection, kept true by a reflector."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube.watch import ChangeType

T = TypeVar("T")


class Store(Generic[T]):
    """
    Objects by key, the handler of a reflector; None stands for one that is of no concern.

    It is changed in place, since copying fifty thousand pods for each that changes would take a
    core. `known` once the whole collection has been read, which is a change too; each change is
    counted, and then reported by `on_change`. Equal objects stay the very same, so that nothing is
    read again that says the same.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._lent = False
        self.known = False
        self.changes = 0

    @property
    def items(self) -> Mapping[str, T]:
        """Return all that is known: a mapping that never changes, the same one until a change."""
        with self._lock:
            self._lent = True
            return self._items

    def get(self, key: str) -> T | None:
        """Return one object; for a few of many this is cheaper than `items`."""
        return self._items.get(key)

    def __len__(self) -> int:
        return len(self._items)

    def replace(self, objects: Sequence[tuple[str, T | None]]) -> None:
        with self._lock:
            before = self._items
            items = {
                key: before[key] if before.get(key) == new else new
                for key, new in objects
                if new is not None
            }
            if self.known and items == before:
                return
            self._items, self._lent, self.known = items, False, True
            self.changes += 1
        self._report()

    def apply(self, change: ChangeType, item: tuple[str, T | None]) -> None:
        key, new = item
        kept = None if change == "DELETED" else new
        with self._lock:
            # Most objects report now and then, and almost never about what is kept of them.
            if self._items.get(key) == kept:
                return
            if self._lent:
                self._items, self._lent = dict(self._items), False
            if kept is None:
                del self._items[key]
            else:
                self._items[key] = kept
            self.changes += 1
        self._report()

    def _report(self) -> None:
        if self._on_change is not None:
            self._on_change()
