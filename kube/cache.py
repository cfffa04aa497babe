"""What is known of one collection, kept true by a reflector; used by the webhook and the agent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kube.watch import ChangeType

T = TypeVar("T")


class Cache(Generic[T]):
    """
    Objects by key, the handler of a reflector. `items` is never changed, only replaced, and only by
    something else: whoever reads it needs no lock, and sees by its identity whether anything
    changed. `known` once the whole collection has been read, which is a change too.
    """

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self.items: Mapping[str, T] = {}
        self.known = False

    def replace(self, objects: Sequence[tuple[str, T]]) -> None:
        with self._lock:
            before = self.items
            # Equal ones stay the very same objects, so that nobody reads them again.
            items = {key: before[key] if before.get(key) == new else new for key, new in objects}
            if self.known and items == before:
                return
            self.items, self.known = items, True
        self._notify()

    def apply(self, change: ChangeType, item: tuple[str, T]) -> None:
        key, new = item
        if change == "DELETED":
            self.forget(key)
            return
        with self._lock:
            # Most objects report now and then, and almost never about what is kept of them.
            if key in self.items and self.items[key] == new:
                return
            self.items = {**self.items, key: new}
        self._notify()

    def forget(self, key: str) -> None:
        with self._lock:
            if key not in self.items:
                return
            self.items = {other: old for other, old in self.items.items() if other != key}
        self._notify()

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change()
