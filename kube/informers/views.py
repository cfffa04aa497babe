"""
PURE. What is kept of objects that several programs watch: little, so that memory stays flat, and of
what a tenant can make long no more than makes sense.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import GpuNode, read_node
from kube.replies import part_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from gpufence.dialects import Units
    from kube.replies import JsonObject


H = TypeVar("H", bound="Hashable")
T = TypeVar("T")

MOST_CHARACTERS: Final = 2**15
"""A text that is longer is kept as one that cannot be read."""
UNREADABLE: Final = "..."


class NamespaceView(NamedTuple):
    """The labels and annotations of a namespace that are ours."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


def view_namespace(
    namespace: JsonObject, labelled: Collection[str] = ()
) -> tuple[str, NamespaceView | None]:
    """Keep the texts that are ours, of a namespace with one of these labels if any are named."""
    metadata = part_of(namespace, "metadata")
    labels = _ours(texts_of(metadata, "labels"))
    if labelled and labels.keys().isdisjoint(labelled):
        return name_of(namespace), None
    return name_of(namespace), NamespaceView(labels, _ours(texts_of(metadata, "annotations")))


def view_policy(policy: JsonObject, keys: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Keep what the kill switch's ConfigMap says under these keys."""
    data = texts_of(policy, "data")
    return name_of(policy), {key: text for key, text in data.items() if key in keys}


def view_node(
    node: JsonObject, defaults: Units, interner: Interner, *, labelled: bool = False
) -> tuple[str, GpuNode | None]:
    """
    Keep what a node says of its cards and units, of one without any GPU its name alone; one that is
    only `labelled` as having GPUs is kept for the cards that others may publish for it.

    A node that cannot be read at all counts as one without GPUs: it must not stop the others.
    """
    name = name_of(node)
    try:
        found = read_node(node, defaults) or (_labelled(node, defaults) if labelled else None)
    except InvalidError:
        return name, None
    return name, None if found is None else shared_node(found, interner)


def shared_node(node: GpuNode, interner: Interner) -> GpuNode:
    """Return an equal node that shares all it can with the others."""
    return node._replace(
        labels=interner.texts(node.labels),
        resources=interner.value(node.resources),
        cards=interner.value(node.cards),
        units=interner.value(node.units),
        driver=interner.value(node.driver),
    )


def name_of(item: JsonObject) -> str:
    return str(part_of(item, "metadata").get("name", ""))


def _labelled(node: JsonObject, defaults: Units) -> GpuNode | None:
    labels = texts_of(part_of(node, "metadata"), "labels")
    if labels.get(names.GPU_PRESENT) != "true":
        return None
    return GpuNode(name_of(node), labels, frozenset(), (), defaults)


def _ours(texts: Mapping[str, str]) -> dict[str, str]:
    return {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in texts.items()
        if key.startswith(names.PREFIX)
    }


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
