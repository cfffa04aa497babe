"""
PURE. JSON-patch operations, each applied to a copy of the object at the moment it is made.

An operation that does not apply makes the API server answer 500 to the pod's creator, even where
the webhook may fail. So none is ever made but through here, and an operation that could not apply
raises in our own process instead. Only what changes is named: fields we have never heard of stay
out of the patch, and so out of danger.

Pods come in series whose operations are alike, so those are made once and used again, and known
by identity to whoever writes them out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, cast

from gpufence.shape import escape_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.shape import Object

Path: TypeAlias = tuple[str | int, ...]


class Shared(dict[str, object]):
    """
    An object that goes into many patches and is never changed: it is looked up by identity.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # dict has none, since dicts change


class SharedTexts(dict[str, str]):
    """
    Members of an object that many pods get and that are never changed: the same for texts alone.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]  # dict has none, since dicts change


Operation: TypeAlias = Shared
_Entries: TypeAlias = SharedTexts | tuple[tuple[str, str | Shared], ...]


class Patch:
    """
    The operations made so far, and the object as it will be when they are applied.

    The object handed in is left as it is: what lies on the path of a change is copied, once.
    """

    def __init__(self, document: Object) -> None:
        self.document: dict[str, object] = dict(document)
        self.operations: list[Operation] = []
        self._ours: dict[int, object] = {}  # by identity, and kept so that none is used again

    def update(self, path: Path, entries: Mapping[str, str | Shared]) -> None:
        """
        Set members of an object, which is made if it is not there.
        """
        if not entries:
            return
        target = self._copy(path)
        if not isinstance(target, dict):
            self._make(path, dict(entries), _made_object(pointer(path), _known(entries)))
            return
        if target.keys().isdisjoint(entries):
            self.operations += _added(pointer(path), _known(entries))
        else:
            prefix = pointer(path)
            self.operations += [
                _set("replace" if key in target else "add", prefix + escape(key), value)
                for key, value in entries.items()
            ]
        target.update(entries)

    def extend(self, path: Path, items: Sequence[Shared]) -> None:
        """
        Append to a list, which is made if it is not there.
        """
        if not items:
            return
        target = self._copy(path)
        if not isinstance(target, list):
            self._make(path, list(items), _made_list(pointer(path), tuple(items)))
            return
        self.operations += _appended(path, tuple(items))
        target += items

    def append(self, path: Path, text: str) -> None:
        """
        Append one text to a list, which is made if it is not there.
        """
        target = self._copy(path)
        if isinstance(target, list):
            self.operations.append(_set("add", f"{pointer(path)}-", text))
            target.append(text)
        else:
            self._make(path, [text], _made_list(pointer(path), (text,)))

    def remove(self, path: Path, key: str | int) -> None:
        """
        Remove one member of an object or one item of a list, which must be there.
        """
        target = cast("dict[str | int, object]", self._copy(path))
        del target[key]
        self.operations.append(_removed(pointer(path) + escape(str(key))))

    def look(self, path: Path) -> dict[str, object]:
        """
        Return the object at a path as it will be; it must be there, and is not to be changed.
        """
        found: object = self.document
        for key in path:
            found = _member(found, key)
        return cast("dict[str, object]", found)

    def _make(
        self, path: Path, value: dict[str, object] | list[object], operation: Operation
    ) -> None:
        parent = cast("dict[str, object]", self._copy(path[:-1]))
        parent[str(path[-1])] = self._ours[id(value)] = value
        self.operations.append(operation)

    def _copy(self, path: Path) -> object:
        """
        Return our copy of what stands at a path; None where nothing does.
        """
        found: object = self.document
        for key in path:
            child = _member(found, key)
            if not isinstance(child, (dict, list)):
                return None
            if id(child) not in self._ours:
                child = child.copy()
                self._ours[id(child)] = child
                found[key] = child  # type: ignore[index]  # what has a member is an object or list
            found = child
        return found


@lru_cache(maxsize=4096)
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
    return escape_pointer(token)


def _known(entries: Mapping[str, str | Shared]) -> _Entries:
    """
    Return members as something that can be looked up: at best what is known by identity.
    """
    return entries if isinstance(entries, SharedTexts) else tuple(entries.items())


@lru_cache(maxsize=1024)
def _set(kind: str, path: str, value: str | Shared) -> Operation:
    return Shared(op=kind, path=path, value=value)


@lru_cache(maxsize=1024)
def _removed(path: str) -> Operation:
    return Shared(op="remove", path=path)


@lru_cache(maxsize=1024)
def _added(prefix: str, entries: _Entries) -> tuple[Operation, ...]:
    return tuple(_set("add", prefix + escape(key), value) for key, value in dict(entries).items())


@lru_cache(maxsize=1024)
def _appended(path: Path, items: tuple[Shared, ...]) -> tuple[Operation, ...]:
    return tuple(_set("add", f"{pointer(path)}-", item) for item in items)


@lru_cache(maxsize=1024)
def _made_object(prefix: str, entries: _Entries) -> Operation:
    return Shared(op="add", path=prefix[:-1], value=dict(entries))


@lru_cache(maxsize=1024)
def _made_list(prefix: str, items: tuple[str | Shared, ...]) -> Operation:
    return Shared(op="add", path=prefix[:-1], value=list(items))


def _member(parent: object, key: str | int) -> object:
    if isinstance(parent, dict):
        return parent.get(key)
    return parent[key] if isinstance(parent, list) and isinstance(key, int) else None
