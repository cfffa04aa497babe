"""PURE. Equal values held once: pods of one owner are alike, and so are nodes of one kind."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

H = TypeVar("H", bound="Hashable")
T = TypeVar("T")

MOST_SHARED: Final = 32768
_DIGEST: Final = 16


class Shared:
    """Returns of equal values the very same one; what it remembers has a bound."""

    def __init__(self) -> None:
        self._json: dict[bytes, Any] = {}
        self._values: dict[Any, Any] = {}

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON as it came
        """Share what was read of JSON, by what it says."""
        return self.same(json.dumps(value, separators=(",", ":")), value)

    def same(self, said: str, value: T) -> T:
        """Share what says the same."""
        shared: T = self._first(self._json, _short(said), value)
        return shared

    def value(self, value: H) -> H:
        shared: H = self._first(self._values, value, value)
        return shared

    def _first(self, known: dict[Any, Any], key: object, value: object) -> Any:  # noqa: ANN401
        if len(known) >= MOST_SHARED:
            known.clear()
        return known.setdefault(key, value)


def digest(value: object) -> bytes:
    """Say in a few bytes what JSON says, in whatever order."""
    return _short(json.dumps(value, sort_keys=True, separators=(",", ":")))


def _short(said: str) -> bytes:
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
