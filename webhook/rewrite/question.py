"""
PURE. What a decision depends on, cut down to plain values that can be looked up.

Pods come in series: whatever a controller makes is alike in all that matters here. So the pod is
reduced to that, and the decision is reached from the reduction alone: nothing that is left out can
make a difference, and what was decided for one pod holds for the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.candidates import assigned_card, profile_of
from gpufence.dialects import ANNOTATION_KEYS, CARD_KEYS, is_gpu_resource
from gpufence.nodes import usable_cards
from gpufence.pods import Container, Pod, phases_of
from gpufence.quantity import write_mebibytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.candidates import CandidateCard
    from gpufence.mode import Mode
    from gpufence.nodes import GpuNode
    from gpufence.pods import Kind
    from gpufence.shape import Object

Pairs = tuple[tuple[str, str], ...]

_KEYS = frozenset((*ANNOTATION_KEYS, *CARD_KEYS))
_WRITTEN = frozenset(names.WRITTEN_KEYS)
_NAMESPACE_KEYS = (names.MAX_MEMORY, names.IMPLIED_LIMITS)


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where the pod will run: the node, and its cards as people know them.
    """

    node: str
    cards: str


class Question(NamedTuple):
    """
    A pod as far as it decides its limits, and the cards it may meet: a tuple, since each is looked
    up for every pod and tuples are quick at that.

    `namespace` holds the words of the namespace that count without standing on the pod. `place` is
    known only at binding, or where the pod names its node itself.
    """

    mode: Mode
    containers: tuple[tuple[str, Kind, str, Pairs], ...]
    annotations: Pairs
    selector: Pairs
    claims: bool
    namespace: Pairs
    choices: tuple[CandidateCard, ...]
    reserve_override: int | None
    place: Place | None = None

    def pod(self) -> Pod:
        """
        Return the pod again, without anything that does not matter.
        """
        containers = tuple(
            Container(name, kind, dict(limits), field)
            for name, kind, field, limits in self.containers
        )
        return Pod(
            annotations=dict(self.annotations),
            containers=containers,
            phases=phases_of(containers),
            node_name="",
            node_selector=dict(self.selector),
            affinity={},
            has_resource_claims=self.claims,
        )


def containers_of(pod: Pod) -> tuple[tuple[str, Kind, str, Pairs], ...]:
    return tuple(
        [(item.name, item.kind, item.field, _gpu_limits(item.limits)) for item in pod.containers]
    )


def annotations_of(annotations: Mapping[str, str]) -> Pairs:
    """
    Keep what users, and schedulers about the card, say to us.
    """
    return tuple(
        [
            (key, text)
            for key, text in annotations.items()
            if (key.startswith(names.PREFIX) and key not in _WRITTEN) or key in _KEYS
        ]
    )


def namespace_of(annotations: Mapping[str, str]) -> Pairs:
    """
    Keep the namespace's words that count for pods without being copied onto them.
    """
    if not annotations:
        return ()
    return tuple((key, annotations[key]) for key in _NAMESPACE_KEYS if key in annotations)


def place_of(pod: Pod, node: GpuNode) -> Place:
    """
    Name a node's cards that a pod may get there.
    """
    cards = usable_cards(node, profile_of(pod), assigned_card(pod))
    said = dict.fromkeys(f"{item.model} {write_mebibytes(item.memory_bytes)}" for item in cards)
    return Place(node.name, ", ".join(text.strip() for text in said))


def _gpu_limits(limits: Object) -> Pairs:
    """
    Keep the GPU resources, every amount as text: 1, true and 1.0 would be the same in a lookup.
    """
    return tuple(
        [
            (resource, value if type(value) is str else repr(value))
            for resource, value in limits.items()
            if is_gpu_resource(resource)
        ]
    )
