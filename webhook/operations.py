"""
PURE. JSON-patch operations, each applied to the object itself at the moment it is made.

An operation that does not apply makes the API server answer 500 to the pod's creator, even where
the webhook may fail. So none is ever made but through here, and an operation that could not apply
raises in our own process instead. Only what changes is named: fields we have never heard of stay
out of the patch, and so out of danger.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from gpufence import names
from gpufence.shape import escape_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Path: TypeAlias = tuple[str | int, ...]
"""Fields of Kubernetes and positions: nothing that a pointer has to escape."""

Operation: TypeAlias = dict[str, object]

MOST_OPERATIONS = 512
"""A pod of ten GPU containers takes about 300."""
_TOO_MANY = MOST_OPERATIONS + 1  # so many of one change tell that its part is replaced as a whole

_MOST_SLOTS = 64
_TOKENS = {
    key: escape_pointer(key)
    for key in (*names.WRITTEN_KEYS, *(f"{names.ENV_PREFIX}s{slot}" for slot in range(_MOST_SLOTS)))
}
"""How the keys that are written most stand in a pointer."""


class Patch:
    """
    The changes made so far, and the object as it will be when they are applied.

    The object handed in is changed, so no two parts of it may be one (YAML has aliases). What is
    put in goes into object and operations alike: it is not to be changed afterwards.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._changes: list[Operation] = []

    @property
    def operations(self) -> list[Operation]:
        """
        Return the operations that make the changes.

        Where those are many, whatever they change is replaced as a whole: an API server looks each
        path up from the root, and moves the rest of a list for each item.
        """
        if len(self._changes) <= MOST_OPERATIONS:
            return self._changes
        parts = dict.fromkeys(tuple(str(each["path"]).split("/")[1:3]) for each in self._changes)
        return [{"op": "add", "path": _pointer(part), "value": self._find(part)} for part in parts]

    def update(self, path: Path, entries: Mapping[str, object]) -> None:
        """Set members of an object, which is made if it is not there."""
        if not entries:
            return
        target = self._find(path)
        if not isinstance(target, dict):
            self._make(path, dict(entries), dict(entries))
            return
        prefix = f"{_pointer(path)}/"
        self._changes += [
            {
                "op": "replace" if key in target else "add",
                "path": prefix + (_TOKENS.get(key) or escape_pointer(key)),
                "value": value,
            }
            for key, value in islice(entries.items(), _TOO_MANY)
        ]
        target.update(entries)

    def extend(self, path: Path, items: Sequence[object]) -> None:
        """Append to a list, which is made if it is not there."""
        if not items:
            return
        target = self._find(path)
        if not isinstance(target, list):
            self._make(path, list(items), list(items))
            return
        end = f"{_pointer(path)}/-"
        self._changes += [{"op": "add", "path": end, "value": item} for item in items[:_TOO_MANY]]
        target += items

    def replace(self, path: Path, key: int, value: object) -> None:
        """Put another item in the place of one of a list, which must be there."""
        self._find(path)[key] = value
        self._changes.append({"op": "replace", "path": f"{_pointer(path)}/{key}", "value": value})

    def remove(self, path: Path, *keys: str) -> None:
        """Remove members of an object, which must be there."""
        members = self._find(path)
        for key in keys:
            del members[key]
        start = f"{_pointer(path)}/"
        self._changes += [
            {"op": "remove", "path": start + escape_pointer(key)} for key in keys[:_TOO_MANY]
        ]

    def drop_items(self, path: Path, positions: Sequence[int]) -> None:
        """Remove items of a list, which must be there: the positions rise."""
        gone = frozenset(positions)
        items = self._find(path)
        items[:] = [item for position, item in enumerate(items) if position not in gone]
        start = f"{_pointer(path)}/"
        self._changes += [
            {"op": "remove", "path": f"{start}{position}"}
            for position in islice(reversed(positions), _TOO_MANY)
        ]

    def at(self, path: Path) -> dict[str, object]:
        """Return the object at a path as it will be; it must be there, and is not to be changed."""
        found: dict[str, object] = self._find(path)
        return found

    def _make(self, path: Path, value: object, copy: object) -> None:
        self._find(path[:-1])[path[-1]] = copy
        self._changes.append({"op": "add", "path": _pointer(path), "value": value})

    def _find(self, path: Path) -> Any:  # noqa: ANN401 - whatever stands there
        """Return what stands at a path; None where nothing does."""
        found: Any = self.document
        for key in path:
            try:
                found = found[key]
            except LookupError:
                return None
        return found


def _pointer(path: Path) -> str:
    return "/" + "/".join(map(str, path))
