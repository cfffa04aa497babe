"""
PURE. To how much the driver is to hold each container of a pod, and why not.

A number above the memory of any of its cards keeps a container from starting, and it cannot be
changed later. So there is one only where no card that the pod may get is smaller, on nodes
known or not there yet; and none where the pod's limit on another card would be much larger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.candidates import usable_cards
from gpufence.cards import SMALLEST_MADE, cards_by_labels
from gpufence.dialects import Declared, Sum, dra, gpushare, kai, read_declaration, volcano
from gpufence.dialects.spec import LARGEST_CARD, is_near
from gpufence.errors import GpufenceError
from gpufence.limits import Limits, limits_on
from gpufence.quantity import MIB
from webhook.driver_limits import Held, obstacle

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.cards import Card
    from gpufence.dialects import Undeclared, Units, Unreadable
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod

UNREADABLE: Final = "its limit is not known on every node that it may get"
LIBRARY: Final = "on some nodes that it may get a library holds it"
UNSTATED: Final = (
    "its limit follows from the card, and a node that it may get, or one that is not there yet, "
    "has no agent that says how large its cards are"
)
UNCERTAIN: Final = "a card that it may get can be smaller than its limit"
TOO_LARGE: Final = "no card that it may get is known to be as large as its limit"
DIFFERS: Final = (
    "its limit is another on other cards that it may get, and the variable is the same on all"
)
TINY: Final = "its limit is below 1 MiB"

SIZE_LABELS: Final = frozenset(
    (names.KARPENTER_GPU_MEMORY, names.EKS_GPU_MEMORY, names.GKE_ACCELERATOR)
)
"""Labels that say the size of parts of a card, too, beside those of one that was measured."""

_COUNTING = frozenset(spec.name for spec in (gpushare.SPEC, volcano.SPEC, kai.SPEC, dra.SPEC))
"""Whose schedulers place a pod only where its amount fits the card."""


class NodeKind(NamedTuple):
    """
    One kind of node that a pod may get, and the sizes of its cards: as NVML has them where they
    are `stated`, else at least so much.
    """

    sizes: tuple[int, ...]
    stated: bool


class LeftOutError(GpufenceError):
    """Raised where no number is right on every card; the text says why."""


@dataclass(slots=True)
class PodParts:
    """
    What a pod asks for, and the parts of its containers on a card of some size; `known` are limits
    that were reckoned already.
    """

    pod: Pod
    options: PodOptions
    namespace: NamespaceOptions
    largest_bytes: int
    known: Mapping[tuple[Units, int | None], Limits]
    _declared: dict[Units, Declared | Undeclared | Unreadable] = field(default_factory=dict)
    _counted: dict[Units, frozenset[str]] = field(default_factory=dict)
    _parts: dict[Units, dict[int, Mapping[str, int]]] = field(default_factory=dict)

    def on_each(self, units: Units, sizes: Collection[int]) -> list[Mapping[str, int]]:
        """Return the parts of containers on a card of each size. Raises LeftOutError."""
        read = self._parts.setdefault(units, {})
        read |= {size: self._read(units, size) for size in sizes if size not in read}
        return [read[size] for size in sizes]

    def _read(self, units: Units, size: int) -> Mapping[str, int]:
        terms = (self.pod, self.options, self.namespace, size)
        limits = self.known.get((units, size)) or limits_on(self.declared(units), *terms)
        if not isinstance(limits, Limits):
            raise LeftOutError(UNREADABLE)
        if limits.library_caps:
            raise LeftOutError(LIBRARY)
        return {name: part for name, part, *_ in limits.parts if part is not None}

    def declared(self, units: Units) -> Declared | Undeclared | Unreadable:
        if units not in self._declared:
            self._declared[units] = read_declaration(self.pod, units)
        return self._declared[units]

    def is_counted(self, container: str, units: Units) -> bool:
        """Return whether a scheduler places the pod only where the part fits the card."""
        if units not in self._counted:
            self._counted[units] = self._count(units)
        return container in self._counted[units]

    def _count(self, units: Units) -> frozenset[str]:
        declared = self.declared(units)
        if not isinstance(declared, Declared) or declared.implied or self.pod.node_name:
            return frozenset()
        every = declared.sum is not Sum.REGULAR
        counted = [item.name for item in self.pod.containers if every or item.regular]
        return frozenset(counted if declared.dialect in _COUNTING else ())


def held_by_driver(
    asked: PodParts, containers: Iterable[str], kinds: Mapping[Units, Iterable[NodeKind]] | str
) -> Held:
    """Return to what the driver is to hold containers; `kinds` may be why to nothing."""
    if isinstance(kinds, str):
        return Held(why_not=kinds)
    found: dict[str, int] = {}
    reasons = []
    for name in containers:
        try:
            amount = _amount(
                [pair for each in kinds.items() for pair in _parts(asked, name, *each)]
            )
        except LeftOutError as error:
            reasons.append(str(error))
        else:
            found |= {name: amount} if amount else {}
    return Held(found, reasons[0] if reasons else "")


def _amount(pairs: list[tuple[int, int | None]]) -> int:
    """Return the bytes that are right on every card; 0 where the container has whole ones."""
    if not pairs:
        raise LeftOutError(TOO_LARGE)
    if all(size is not None and part >= size for part, size in pairs):
        return 0
    amounts = [part if size is None or part < size else size for part, size in pairs]
    if not is_near(min(amounts), max(amounts)):
        raise LeftOutError(DIFFERS)
    if min(amounts) < MIB:
        raise LeftOutError(TINY)
    return min(amounts) // MIB * MIB


def _parts(
    asked: PodParts, container: str, units: Units, kinds: Iterable[NodeKind]
) -> list[tuple[int, int | None]]:
    """
    Return a container's part of each card on nodes of some kinds, and the card's size; None where
    it is certain to be at least the part. Nothing is said of a kind which the pod does not fit.
    """
    ends = asked.on_each(units, (LARGEST_CARD, SMALLEST_MADE))
    part, least = (each.get(container) for each in ends)
    if part is None or least is None:
        raise LeftOutError(UNREADABLE)
    if part >= LARGEST_CARD:  # a whole card, however large
        return [(part, size) for kind in kinds for size in kind.sizes]
    if part != least:
        if not all(kind.stated for kind in kinds):
            raise LeftOutError(UNSTATED)
        sizes = [size for kind in kinds for size in kind.sizes]
        parts = [each[container] for each in asked.on_each(units, sizes)]
        return list(zip(parts, sizes, strict=True))
    if asked.is_counted(container, units):
        most = asked.largest_bytes
        kinds = [kind for kind in kinds if part <= (max(kind.sizes) if kind.stated else most)]
    elif any(not kind.stated and part > min(kind.sizes) for kind in kinds):
        raise LeftOutError(UNCERTAIN)
    return [(part, size if kind.stated else None) for kind in kinds for size in kind.sizes]


def kinds_of(
    pod: Pod, nodes: Iterable[GpuNode], default: CandidateCard, *, grows: bool
) -> dict[Units, dict[NodeKind, None]] | str:
    """
    Return the kinds of nodes that a pod may get, or why none of its containers is to be held;
    with one that is not there yet where nodes come and go, or there is none.
    """
    smallest = _shown(default.memory_bytes or SMALLEST_MADE)
    found: dict[Units, dict[NodeKind, None]] = {}
    for node in nodes:
        cards = usable_cards(pod, node)
        why = obstacle(node, cards)
        if why:
            return why
        sizes = tuple([card.memory_bytes for card in cards])
        known = node.driver or _is_certain(node.labels, cards)
        kind = NodeKind(sizes if known else (smallest,), bool(node.driver))
        found.setdefault(node.units, {})[kind] = None
    if not found or (grows and not pod.node_name):
        least = _shown(SMALLEST_MADE) if grows else smallest
        kind = NodeKind((_selected(pod, least),), stated=False)
        found.setdefault(default.units, {})[kind] = None
    return {units: _ends(kinds) for units, kinds in found.items()}


def _ends(kinds: Mapping[NodeKind, None]) -> dict[NodeKind, None]:
    """Leave out nodes of one size between the smallest and the largest of these, which tell all."""
    between: set[NodeKind] = set()
    for stated in (True, False):
        alike = [kind for kind in kinds if kind.stated is stated and len(set(kind.sizes)) == 1]
        between.update(sorted(alike)[1:-1])
    return {kind: None for kind in kinds if kind not in between}


def _selected(pod: Pod, least: int) -> int:
    """Return what a card has at least that a pod's own selector asks for."""
    cards = [card for card in cards_by_labels(pod.node_selector)[:1] if not card.mig]
    return cards[0].memory_bytes if _is_certain(pod.node_selector, cards) else least


def _is_certain(labels: Mapping[str, str], cards: Iterable[Card]) -> bool:
    """Return whether labels tell what cards have at least."""
    bounds = [card.most_bytes for card in cards]
    return bool(bounds) and (bounds[0] is None or not SIZE_LABELS.isdisjoint(labels))


def _shown(sold: int) -> int:
    """Return the least that a driver shows of a card that is sold with so much."""
    return sold * 9 // 10
