"""
PURE. JSON-patch operations, each applied to a copy of the object at the moment it is made.

An operation that does not apply makes the API server answer 500 to the pod's creator, even where
the webhook may fail. So none is ever made but through here, and an operation that could not apply
raises in our own process instead. Only what changes is named: fields we have never heard of stay
out of the patch, and so out of danger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

from gpufence import names
from gpufence.shape import escape_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.shape import Object

Path: TypeAlias = tuple[str | int, ...]
"""Fields of Kubernetes and positions: nothing that a pointer has to escape."""

Operation: TypeAlias = dict[str, object]

_MOST_SLOTS = 64
_TOKENS = {
    key: escape_pointer(key)
    for key in (*names.WRITTEN_KEYS, *(f"{names.ENV_PREFIX}s{slot}" for slot in range(_MOST_SLOTS)))
}
"""How the keys that are written most stand in a pointer."""


class Patch:
    """
    The operations made so far, and the object as it will be when they are applied.

    The object handed in is left as it is, and so are values that are put in: what lies on the path
    of a change is copied, once. Parts of a manifest may be one object (YAML has aliases), so a copy
    is known by its identity and not by its path.
    """

    def __init__(self, document: Object) -> None:
        self.document: dict[str, object] = dict(document)
        self.operations: list[Operation] = []
        self._copies: dict[int, object] = {}  # kept, so that no identity is used again

    def update(self, path: Path, entries: Mapping[str, object]) -> None:
        """
        Set members of an object, which is made if it is not there.
        """
        if not entries:
            return
        target = self._copy(path)
        if not isinstance(target, dict):
            self._make(path, dict(entries), dict(entries))
            return
        prefix = f"{_pointer(path)}/"
        self.operations += [
            {
                "op": "replace" if key in target else "add",
                "path": prefix + (_TOKENS.get(key) or escape_pointer(key)),
                "value": value,
            }
            for key, value in entries.items()
        ]
        target.update(entries)

    def extend(self, path: Path, items: Sequence[object]) -> None:
        """
        Append to a list, which is made if it is not there.
        """
        if not items:
            return
        target = self._copy(path)
        if not isinstance(target, list):
            self._make(path, list(items), list(items))
            return
        end = f"{_pointer(path)}/-"
        self.operations += [{"op": "add", "path": end, "value": item} for item in items]
        target += items

    def remove(self, path: Path, key: str | int) -> None:
        """
        Remove one member of an object or one item of a list, which must be there.
        """
        target = cast("dict[str | int, object]", self._copy(path))
        del target[key]
        token = escape_pointer(str(key))
        self.operations.append({"op": "remove", "path": f"{_pointer(path)}/{token}"})

    def look(self, path: Path) -> dict[str, object]:
        """
        Return the object at a path as it will be; it must be there, and is not to be changed.
        """
        found: Any = self.document
        for key in path:
            found = found[key]
        return cast("dict[str, object]", found)

    def _make(self, path: Path, value: object, copy: dict[str, object] | list[object]) -> None:
        parent = cast("dict[str, object]", self._copy(path[:-1]))
        parent[str(path[-1])] = self._copies[id(copy)] = copy
        self.operations.append({"op": "add", "path": _pointer(path), "value": value})

    def _copy(self, path: Path) -> object:
        """
        Return our copy of what stands at a path; None where nothing does.
        """
        found: Any = self.document
        for key in path:
            try:
                child = found[key]
            except LookupError:
                return None
            if id(child) not in self._copies:
                if not isinstance(child, (dict, list)):
                    return None
                child = found[key] = child.copy()
                self._copies[id(child)] = child
            found = child
        return found


def _pointer(path: Path) -> str:
    return "/" + "/".join(map(str, path))
