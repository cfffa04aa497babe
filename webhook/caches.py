"""What is remembered of nodes and namespaces, kept true by reflectors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from gpufence import names
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.need import top_owner
from gpufence.need.applied import AppliedProfile
from gpufence.need.profile import Apply, profile_name, read_profile
from gpufence.nodes import GpuNode, read_node
from gpufence.slices import newest, read_slice
from kube import Cache
from kube.owners import controller_of
from kube.replies import part_of
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from gpufence.dialects import Units
    from gpufence.shape import Object
    from gpufence.slices import PublishedCards
    from kube import ChangeType, JsonObject

H = TypeVar("H", bound="Hashable")
T = TypeVar("T")

_LEAST_PAUSE_SECONDS = 0.02
_PAUSES_PER_BUILD = 20  # so that building never takes more than a twentieth of the time

NamedNode: TypeAlias = "tuple[str, GpuNode | None]"
NamedAnnotations: TypeAlias = "tuple[str, Mapping[str, str]]"
# A dict of fifty labels takes 5 KB, five thousand of them a third of all the memory the webhook may
# have. The keys of most nodes are the same, so they are held once; the values are held once each.
_MOST_SHARED = 8192
"""More different values than that are not worth remembering."""


class SparseCache(Cache[T]):
    """A cache of those objects of a collection that concern us: None stands for any other."""

    def replace(self, objects: Sequence[tuple[str, T | None]]) -> None:
        super().replace([(name, item) for name, item in objects if item is not None])

    def apply(self, change: ChangeType, item: tuple[str, T | None]) -> None:
        name, kept = item
        if kept is None:
            super().forget(name)
        else:
            super().apply(change, (name, kept))


class NodeCache(SparseCache["GpuNode"]):
    """
    The GPU nodes by name, and the fleet made of them; the cards of those that say nothing of theirs
    are taken from what their DRA drivers have `published`.

    The fleet is made anew when it is asked for after a change, but not again and again while a
    thousand nodes report: until the pause is over, the last one serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(self._note_change)
        self.published: SparseCache[PublishedCards] = SparseCache(self._note_change)
        self._monotonic = monotonic
        self._fleet = Fleet(())
        self._changed = False
        self._next_build = 0.0

    def replace(self, objects: Sequence[NamedNode]) -> None:
        super().replace(objects)
        self._next_build = 0.0

    def node(self, name: str) -> GpuNode | None:
        """Return a node that offers GPUs, by resources or by claims."""
        node = self.items.get(name)
        if node is None or node.resources or node.cards:
            return node
        published = [item for item in self.published.items.values() if item.node == name]
        return _with_cards(node, published) if published else None

    def fleet(self) -> Fleet:
        now = self._monotonic()
        if not self._changed or now < self._next_build:
            return self._fleet
        self._changed = False
        by_node: dict[str, list[PublishedCards]] = {}
        for item in self.published.items.values():
            by_node.setdefault(item.node, []).append(item)
        known = [_with_cards(node, by_node.get(node.name, ())) for node in self.items.values()]
        self._fleet = Fleet([node for node in known if node.cards or node.resources])
        done = self._monotonic()
        self._next_build = done + max(_LEAST_PAUSE_SECONDS, (done - now) * _PAUSES_PER_BUILD)
        return self._fleet

    def _note_change(self) -> None:
        self._changed = True


def keep_node(node: JsonObject, defaults: Units) -> NamedNode:
    """
    Remember of a node only what limits are computed from; its name alone if it has no GPU. One
    that only has the label is remembered for the cards that others may publish for it.

    A node that cannot be read at all counts as one without GPUs: it must not stop the others.
    """
    name = _name(node)
    try:
        found = read_node(node, defaults) or _labelled(node, defaults)
    except InvalidError:
        return name, None
    return name, None if found is None else compact(found)


def _labelled(node: JsonObject, defaults: Units) -> GpuNode | None:
    labels = part_of(part_of(node, "metadata"), "labels")
    if labels.get(names.GPU_PRESENT) != "true":
        return None
    return GpuNode(_name(node), labels, frozenset(), (), defaults)


def _with_cards(node: GpuNode, published: Sequence[PublishedCards]) -> GpuNode:
    """
    Fill in what slices alone say: what a claim without an amount gets, and the cards where nobody
    else tells them.
    """
    least = [item.least_bytes for item in published if item.least_bytes is not None]
    if least:
        node = node._replace(units=node.units._replace(claim_bytes=min(least)))
    return node if node.cards else node._replace(cards=tuple(newest(published).values()))


def keep_slice(item: JsonObject) -> tuple[str, PublishedCards | None]:
    """Remember the cards that a ResourceSlice of a GPU driver lists."""
    return _name(item), read_slice(item)


def keep_namespace(namespace: JsonObject) -> NamedAnnotations:
    """Remember of a namespace only the annotations that are ours."""
    annotations = namespace.get("metadata", {}).get("annotations") or {}
    return _name(namespace), {
        key: value
        for key, value in annotations.items()
        if key.startswith(names.PREFIX) and isinstance(value, str)
    }


def _name(item: JsonObject) -> str:
    return str(item.get("metadata", {}).get("name", ""))


def keep_profile(profile: JsonObject) -> tuple[str, AppliedProfile | None]:
    """
    Remember of a profile what it gives to pods, where it is to be applied and has anything to give.
    """
    metadata = profile.get("metadata", {})
    key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    try:
        found = read_profile(profile)
    except InvalidError:
        return key, None
    if found.apply is not Apply.AT_CREATE or not found.applied:
        return key, None
    most = min(found.terms.most_bytes or LARGEST_CARD, LARGEST_CARD)
    amounts = {_shared(name): min(amount, most) for name, amount in found.applied.items()}
    return key, AppliedProfile(found.name, found.generation, amounts)


def profile_of(namespace: str, pod: Object) -> str:
    """Return by which key the profile of a pod's owner would be remembered."""
    metadata = part_of(dict(pod), "metadata")
    owner = controller_of(metadata)
    if owner is None:
        return f"{namespace}/{profile_name('Pod', str(metadata.get('name', '')))}"
    kind, name = top_owner(owner.kind, owner.name, part_of(metadata, "labels"))
    return f"{namespace}/{profile_name(kind, name)}"


class Labels(Mapping[str, str]):
    """Labels that share their keys with all nodes that have the same ones."""

    __slots__ = ("_places", "_values")

    def __init__(self, labels: Mapping[str, str]) -> None:
        keys = sorted(labels)
        self._places = _places(tuple(keys))
        self._values = tuple(_shared(labels[key]) for key in keys)

    def __getitem__(self, key: str) -> str:
        return self._values[self._places[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labels):
            return self._values == other._values and self._places == other._places
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(self._values)

    def __repr__(self) -> str:
        return f"Labels({dict(self)!r})"


def compact(node: GpuNode) -> GpuNode:
    """Return an equal node that shares all it can with the others."""
    return node._replace(
        labels=Labels(node.labels),
        resources=_shared(node.resources),
        cards=_shared(node.cards),
        units=_shared(node.units),
    )


@lru_cache(maxsize=_MOST_SHARED)
def _places(keys: tuple[str, ...]) -> Mapping[str, int]:
    return MappingProxyType({_shared(key): place for place, key in enumerate(keys)})


def _shared(value: H) -> H:
    found: H = _first_equal(value)
    return found


@lru_cache(maxsize=_MOST_SHARED, typed=True)  # values of two types can be equal tuples
def _first_equal(value: H) -> H:
    return value
