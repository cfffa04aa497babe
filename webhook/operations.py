"""
PURE. JSON-patch operations, each applied to a copy of the object at the moment it is made.

An operation that does not apply makes the API server answer 500 to the pod's creator, even where
the webhook may fail. So none is ever made but through here, and an operation that could not apply
raises in our own process instead. Only what changes is named: fields we have never heard of stay
out of the patch, and so out of danger.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.shape import Object

Operation: TypeAlias = dict[str, object]
Path: TypeAlias = tuple[str | int, ...]


class Patch:
    """
    The operations made so far, and the object as it will be when they are applied.

    The object handed in is left as it is: what lies on the path of a change is copied, once.
    """

    def __init__(self, document: Object) -> None:
        self.document: dict[str, object] = dict(document)
        self.operations: list[Operation] = []
        self._copies: dict[Path, object] = {(): self.document}

    def update(self, path: Path, entries: Mapping[str, object]) -> None:
        """
        Set members of an object, which is made if it is not there.
        """
        if not entries:
            return
        found = self._copy(path)
        if found is None:
            self._make(path, dict(entries))
            return
        target = cast("dict[str, object]", found)
        prefix = pointer(path)
        for key, value in entries.items():
            kind = "replace" if key in target else "add"
            self.operations.append({"op": kind, "path": prefix + escape(key), "value": value})
        target.update(entries)

    def extend(self, path: Path, items: Sequence[object]) -> None:
        """
        Append to a list, which is made if it is not there.
        """
        if not items:
            return
        found = self._copy(path)
        if found is None:
            self._make(path, list(items))
            return
        end = f"{pointer(path)}-"
        self.operations.extend({"op": "add", "path": end, "value": item} for item in items)
        cast("list[object]", found).extend(items)

    def remove(self, path: Path, key: str | int) -> None:
        """
        Remove one member of an object or one item of a list, which must be there.
        """
        target = cast("dict[str | int, object]", self._copy(path))
        del target[key]
        below = len(path)
        self._copies = {  # items of a list move up, so what was known below is known no more
            known: copy
            for known, copy in self._copies.items()
            if known == path or known[:below] != path
        }
        self.operations.append({"op": "remove", "path": pointer(path) + escape(str(key))})

    def look(self, path: Path) -> dict[str, object]:
        """
        Return the object at a path as it will be; it must be there, and is not to be changed.
        """
        found: object = self.document
        for key in path:
            found = _member(found, key)
        return cast("dict[str, object]", found)

    def _make(self, path: Path, value: object) -> None:
        parent = cast("dict[str, object]", self._copy(path[:-1]))
        parent[str(path[-1])] = self._copies[path] = value
        shown = value.copy() if isinstance(value, dict | list) else value
        self.operations.append({"op": "add", "path": pointer(path)[:-1], "value": shown})

    def _copy(self, path: Path) -> object:
        """
        Return our copy of what stands at a path; None where nothing does.
        """
        known = self._copies.get(path)
        if known is not None:
            return known
        parent = self._copy(path[:-1])
        child = _member(parent, path[-1])
        if child is None:
            return None
        copy = child.copy() if isinstance(child, dict | list) else child
        cast("dict[str | int, object]", parent)[path[-1]] = copy
        self._copies[path] = copy
        return copy


def pointer(path: Path) -> str:
    """
    Return the JSON pointer of a path with a slash at the end, ready for a last token.
    """
    return "/".join(["", *map(escape, map(str, path)), ""])


@lru_cache(maxsize=4096)
def escape(token: str) -> str:
    """
    Escape one token of a JSON pointer (RFC 6901).
    """
    return token.replace("~", "~0").replace("/", "~1")


def _member(parent: object, key: str | int) -> object:
    if isinstance(parent, dict):
        return parent.get(key)
    return cast("list[object]", parent)[cast("int", key)]
