"""
PURE. All GPU nodes of a cluster, arranged so that a pod's candidate cards cost next to nothing.

Five thousand nodes are rarely more than a handful of kinds. Nodes of one kind, equal in all that
decides a limit, are kept as one; which of them a pod's selectors allow is worked out on bit sets,
one bit for each node, from an index of the labels that pods have asked for so far.

Taints are left out on purpose: ignoring them only adds candidates, and every value before binding
is the smallest over all of them.
"""

from __future__ import annotations

from functools import reduce
from itertools import chain
from operator import or_
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.candidates import assigned_card, candidate_cards, wanted_resources
from gpufence.nodes import NAME_FIELD, REQUIRED, holds, too_many
from gpufence.shape import as_object, as_text, objects, texts
from webhook.driver_limits import has_label
from webhook.driver_limits.amounts import SIZE_LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpufence.candidates import CandidateCard
    from gpufence.nodes import GpuNode
    from gpufence.pods import Pod
    from gpufence.reserves import ByModel
    from gpufence.shape import Object

_MOST_INDEXES = 256
"""Label keys kept indexed, of those that nodes have."""

_MOST_ANSWERS = 1024
_MOST_SIZES = 16
"""Of cards that differ in nothing else; no cluster has so many."""
_MOST_COMPARED = 16_384
"""Values that a pod's affinity is compared with, its own and those of nodes."""


class Fleet:
    """
    A cluster's GPU nodes at one moment. Nothing in it changes but what it has looked up already; of
    a fleet that `grows` a pod may meet nodes that are not there yet.
    """

    def __init__(self, nodes: Iterable[GpuNode]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._labels = [node.labels for node in self._nodes.values()]
        self._everywhere = (1 << len(self._labels)) - 1
        self._absent: Mapping[str | None, int] = {None: self._everywhere}
        self._kinds = _kinds(self._nodes.values(), _kind)
        self.grows = any(_comes_and_goes(node.labels) for node in self._nodes.values())
        self._indexes: dict[str, Mapping[str | None, int]] = {}
        self._keys: frozenset[str] | None = None
        self._answers: dict[object, tuple[CandidateCard, ...]] = {}
        self._by_driver: list[tuple[GpuNode, int]] | None = None

    def node(self, name: str) -> GpuNode | None:
        return self._nodes.get(name)

    def candidates(
        self, pod: Pod, default: CandidateCard, measured: ByModel = ()
    ) -> tuple[CandidateCard, ...]:
        """Return every different card the pod might meet."""
        if pod.node_name:
            node = self._nodes.get(pod.node_name)
            return candidate_cards(pod, [] if node is None else [node], default, measured)
        wanted = wanted_resources(pod)
        bound = pod.node_selector or pod.affinity
        allowed = self._allowed(pod) if bound else self._everywhere
        met = tuple(
            position
            for position, (node, members) in enumerate(self._kinds)
            if members & allowed and wanted <= node.resources
        )
        nodes = [self._kinds[position][0] for position in met]
        if not nodes or names.GPUSHARE_CARD_UNITS in pod.annotations:
            return candidate_cards(pod, nodes, default, measured)
        # Of the pod's own texts none is remembered: what it asks for is what these nodes offer.
        question = (met, wanted, assigned_card(pod), default, measured)
        answer = self._answers.get(question)
        if answer is None:
            answer = candidate_cards(pod, nodes, default, measured)
            if len(answer) > _MOST_SIZES:
                answer = _without_many_sizes(answer)
            if len(self._answers) < _MOST_ANSWERS:
                self._answers[question] = answer
        return answer

    def nodes(self, pod: Pod) -> tuple[GpuNode, ...]:
        """
        Return one node of each kind the pod might meet, kinds by driver, too; of those that offer
        nothing at the moment nobody knows that they will not.
        """
        if pod.node_name:
            node = self._nodes.get(pod.node_name)
            return () if node is None else (node,)
        if self._by_driver is None:
            self._by_driver = _kinds(self._nodes.values(), _kind_by_driver)
        wanted, allowed = wanted_resources(pod), self._allowed(pod)
        return tuple(
            node
            for node, members in self._by_driver
            if members & allowed and (wanted <= node.resources or not node.resources)
        )

    def _allowed(self, pod: Pod) -> int:
        """
        Return the set of nodes that nodeSelector and required affinity allow; a pod that requires
        too much counts as if it took any.
        """
        allowed = self._everywhere
        for key, value in pod.node_selector.items():
            if allowed:
                allowed &= self._index(key).get(value, 0)
        required = pod.affinity.get(REQUIRED)
        if required is None:
            return allowed
        terms = objects(as_object(required, REQUIRED).get("nodeSelectorTerms"), REQUIRED)
        if too_many(terms) or self._compared(terms) > _MOST_COMPARED:
            return allowed
        return allowed & reduce(or_, (self._term(term) for term in terms), 0)

    def _compared(self, terms: Iterable[Object]) -> int:
        """Return how many values the requirements of some terms are compared with."""
        count = 0
        for term in terms:
            by_label = objects(term.get("matchExpressions"), "matchExpressions")
            for item in (*by_label, *objects(term.get("matchFields"), "matchFields")):
                count += len(texts(item.get("values"), "values"))
                if item.get("operator") in ("Gt", "Lt"):
                    count += len(self._index(as_text(item.get("key"), "key")))
        return count

    def _term(self, term: Object) -> int:
        """
        Return the nodes for which every requirement of a term holds; an empty term matches none.
        """
        by_label = objects(term.get("matchExpressions"), "matchExpressions")
        by_field = objects(term.get("matchFields"), "matchFields")
        if not by_label and not by_field:
            return 0
        allowed = self._everywhere
        for item in by_label:
            allowed &= self._holding(item, self._index(as_text(item.get("key"), "key")))
        for item in by_field:
            key = as_text(item.get("key"), "key")
            allowed &= self._holding(item, self._names() if key == NAME_FIELD else self._absent)
        return allowed

    def _holding(self, requirement: Object, index: Mapping[str | None, int]) -> int:
        """
        Return the nodes for which a requirement holds, asking once for each value, not each node.
        """
        values = texts(requirement.get("values"), "values")
        operator = requirement.get("operator")
        if operator in ("In", "NotIn"):
            among = reduce(or_, (index.get(item, 0) for item in values), 0)
            return among if operator == "In" else self._everywhere & ~among
        if operator in ("Exists", "DoesNotExist"):
            absent = index.get(None, 0)
            return absent if operator == "DoesNotExist" else self._everywhere & ~absent
        chosen = (nodes for value, nodes in index.items() if holds(operator, value, values))
        return reduce(or_, chosen, 0)

    def _index(self, key: str) -> Mapping[str | None, int]:
        """
        Return, for each value of a label, the set of nodes that have it; None: the label is absent.
        """
        if self._keys is None:
            self._keys = frozenset(chain.from_iterable(self._labels))
        if key not in self._keys:
            return self._absent
        return self._indexed(key, (labels.get(key) for labels in self._labels))

    def _names(self) -> Mapping[str | None, int]:
        return self._indexed(f"/{NAME_FIELD}", self._nodes)  # no label's key begins with a slash

    def _indexed(self, key: str, values: Iterable[str | None]) -> Mapping[str | None, int]:
        index = self._indexes.get(key)
        if index is None:
            index = _sets(values)
            if len(self._indexes) < _MOST_INDEXES:
                self._indexes[key] = index
        return index


def _without_many_sizes(cards: tuple[CandidateCard, ...]) -> tuple[CandidateCard, ...]:
    """
    Return cards without some of many sizes between the smallest and the largest, on one of which
    every value is smallest: so a pod of many amounts is no more work.
    """
    alike: dict[CandidateCard, list[CandidateCard]] = {}
    for card in cards:
        alike.setdefault(card._replace(memory_bytes=None), []).append(card)
    kept: set[CandidateCard] = set()
    for each in alike.values():
        by_size = sorted(each, key=lambda card: card.memory_bytes or 0)
        kept.update(by_size[:: -(-len(each) // _MOST_SIZES)], by_size[-1:])
    return tuple([card for card in cards if card in kept])


def _comes_and_goes(labels: Mapping[str, str]) -> bool:
    """Return whether a node was made for the pods of an hour, as others will be."""
    return names.KARPENTER_POOL in labels or labels.get(names.EKS_COMPUTE) == "auto"


def _sets(values: Iterable[str | None]) -> dict[str | None, int]:
    members: dict[str | None, int] = {}
    for position, value in enumerate(values):
        members[value] = members.get(value, 0) | 1 << position
    return members


def _kinds(
    nodes: Iterable[GpuNode], kind_of: Callable[[GpuNode], object]
) -> list[tuple[GpuNode, int]]:
    """Return one node of each kind with the set of all that are alike."""
    kinds: dict[object, tuple[GpuNode, int]] = {}
    for position, node in enumerate(nodes):
        kind = kind_of(node)
        first, members = kinds.get(kind, (node, 0))
        kinds[kind] = (first, members | 1 << position)
    return list(kinds.values())


def _kind(node: GpuNode) -> object:
    """Return all of a node that decides which cards it offers a pod and what amounts mean there."""
    parents = {card.mig.parent for card in node.cards if card.mig}
    cards = tuple(
        (
            card.memory_bytes,
            card.most_bytes,
            card.model,
            card.compute_capability,
            card.index,
            card.mig.profile if card.mig else None,
            card.uuid in parents,
        )
        for card in node.cards
    )
    return node.resources, node.units, cards


def _kind_by_driver(node: GpuNode) -> object:
    """Return all of a node that decides what its driver can hold a pod to."""
    return _kind(node), node.driver, has_label(node), SIZE_LABELS.intersection(node.labels)
