"""
PURE. Equal values held once: pods of one owner are alike, and so are nodes of one kind.

A dict of fifty labels takes 5 KB, so those of five thousand nodes would be most of what a program
holds; but their keys are the same for most, and their values for many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

H = TypeVar("H", bound="Hashable")
T = TypeVar("T")

MOST_VALUES: Final = 32768
"""More different values than that are not worth remembering: it begins anew with none."""
_DIGEST: Final = 16


class Interner:
    """Returns of equal values the very same one; what it remembers of each type has a bound."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._json: dict[bytes, Any] = {}
        self._places: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._values: dict[type, dict[Any, Any]] = {}

    def value(self, value: H) -> H:
        """Share a value with equal ones of its type: values of two types can be equal tuples."""
        shared: H = self._first(self._values.setdefault(value.__class__, {}), value, value)
        return shared

    def json(self, value: Any) -> Any:  # noqa: ANN401 - JSON as it came
        """Share what was read of JSON, by what it says."""
        return self.same(json.dumps(value, separators=(",", ":")), value)

    def same(self, said: str, value: T) -> T:
        """Share what says the same."""
        shared: T = self._first(self._json, _short(said), value)
        return shared

    def texts(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return equal texts that share their keys with all that have the same ones."""
        keys = tuple(sorted(texts))
        places = self._places.get(keys)
        if places is None:
            numbered = {self.value(key): place for place, key in enumerate(keys)}
            places = self._first(self._places, keys, numbered)
        return SharedTexts(places, tuple(self.value(texts[key]) for key in keys))

    def _first(self, known: dict[Any, Any], key: object, value: object) -> Any:  # noqa: ANN401
        if len(known) >= self._most:
            known.clear()
        return known.setdefault(key, value)


class SharedTexts(Mapping[str, str]):
    """Texts by keys, of which only the texts are its own."""

    __slots__ = ("_places", "_texts")

    def __init__(self, places: Mapping[str, int], texts: tuple[str, ...]) -> None:
        self._places = places
        self._texts = texts

    def __getitem__(self, key: str) -> str:
        return self._texts[self._places[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._texts)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedTexts):
            return self._texts == other._texts and self._places == other._places
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(self._texts)

    def __repr__(self) -> str:
        return f"SharedTexts({dict(self)!r})"


def digest(value: object) -> bytes:
    """Say in a few bytes what JSON says, in whatever order."""
    return _short(json.dumps(value, sort_keys=True, separators=(",", ":")))


def _short(said: str) -> bytes:
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
