"""The GPU nodes of a cluster, the fleet made of them, and what is kept of profiles and slices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.need import top_owner
from gpufence.need.applied import AppliedProfile
from gpufence.need.profile import Apply, profile_name, read_profile
from gpufence.slices import newest, read_slice
from kube.informers import Store
from kube.informers.views import name_of
from kube.owners import controller_of
from kube.replies import part_of
from webhook.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpufence.nodes import GpuNode
    from gpufence.shape import Object
    from gpufence.slices import PublishedCards
    from kube import JsonObject
    from kube.informers import Interner

_LEAST_PAUSE_SECONDS: Final = 0.02
_PAUSES_PER_BUILD: Final = 20  # so that building never takes more than a twentieth of the time


class NodeCache:
    """
    The GPU `nodes` by name, and the fleet made of them; the cards of those that say nothing of
    theirs are taken from what their DRA drivers have `published`.

    The fleet is made anew when it is asked for after a change, but not again and again while a
    thousand nodes report: until the pause is over, the last one serves.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.nodes: Store[GpuNode] = Store(self._note_change)
        self.published: Store[PublishedCards] = Store(self._note_change)
        self._monotonic = monotonic
        self._fleet = Fleet(())
        self._changed = False
        self._next_build = 0.0

    def node(self, name: str) -> GpuNode | None:
        """Return a node that offers GPUs, by resources or by claims."""
        node = self.nodes.get(name)
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
        known = [
            _with_cards(node, by_node.get(node.name, ())) for node in self.nodes.items.values()
        ]
        self._fleet = Fleet([node for node in known if node.cards or node.resources])
        done = self._monotonic()
        self._next_build = done + max(_LEAST_PAUSE_SECONDS, (done - now) * _PAUSES_PER_BUILD)
        return self._fleet

    def _note_change(self) -> None:
        self._changed = True


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
    return name_of(item), read_slice(item)


def keep_profile(profile: JsonObject, interner: Interner) -> tuple[str, AppliedProfile | None]:
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
    amounts = {interner.value(name): min(amount, most) for name, amount in found.applied.items()}
    return key, AppliedProfile(found.name, found.generation, amounts)


def profile_of(namespace: str, pod: Object) -> str:
    """Return by which key the profile of a pod's owner would be remembered."""
    metadata = part_of(dict(pod), "metadata")
    owner = controller_of(metadata)
    if owner is None:
        return f"{namespace}/{profile_name('Pod', str(metadata.get('name', '')))}"
    kind, name = top_owner(owner.kind, owner.name, part_of(metadata, "labels"))
    return f"{namespace}/{profile_name(kind, name)}"
