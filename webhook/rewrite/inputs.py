"""PURE. What a decision about a pod depends on: what it asks for, and its limits on every card."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.annotations import (
    HookCarrier,
    NamespaceOptions,
    read_namespace_options,
    read_pod_options,
)
from gpufence.candidates import usable_cards
from gpufence.card_labels import SMALLEST_MADE, shown_memory
from gpufence.dialects import Declared, Undeclared, Unreadable, dra, kai, read_declaration
from gpufence.limits import Limits, limits_on
from gpufence.mode import Mode
from webhook.engines.words import NO_SERVER
from webhook.frameworks.figures import Injecting, LimitOnCard, PodTerms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.dialects import Units
    from gpufence.errors import Problem
    from gpufence.nodes import GpuNode
    from gpufence.plan import ProfileUsed
    from gpufence.pods import Pod

_NAMESPACE_KEYS = (names.MAX_MEMORY, names.IMPLIED_LIMITS, names.UNDECLARED_USE)
_NO_NAMESPACE_OPTIONS = NamespaceOptions()


class KnownNode(NamedTuple):
    """
    Where the pod will run: the node, and its cards as people know them; not `told` where nothing on
    it says how large they are.
    """

    name: str
    cards: str
    told: bool = True


class PodLimits(NamedTuple):
    """
    The limits on each card, at least one; `unclear` are the problems of cards that gave none.

    `first` are those on the first card, for all that is the same on every card. `limit_bytes` is
    the smallest limit there is. `fenced` is True where gpufence is to hold the pod to it.
    """

    by_card: list[tuple[CandidateCard, Limits]]
    first: Limits
    limit_bytes: int | None
    library_caps: bool
    fenced: bool
    unclear: tuple[Problem, ...]


class PlanInputs(NamedTuple):
    """
    A pod as it counts, what its annotations ask for, and its limits or why there are none.

    `namespace_texts` are the namespace's annotations that count without standing on the pod. `node`
    is known only at binding, or where the pod names its node itself. `profile` is whose amounts the
    pod holds to.
    """

    mode: Mode
    pod: Pod
    options: PodOptions
    namespace: NamespaceOptions
    namespace_texts: Mapping[str, str]
    candidates: tuple[CandidateCard, ...]
    limits: PodLimits | Undeclared | Unreadable
    terms: PodTerms
    node: KnownNode | None
    profile: ProfileUsed | None = None

    @property
    def dialect(self) -> str | None:
        return self.limits.first.dialect if isinstance(self.limits, PodLimits) else None

    @property
    def may_get_more(self) -> bool:
        """
        Return whether the limit is only what is asked for of claims, which a policy rounds up.
        """
        if self.options.grants_memory or self.dialect != dra.SPEC.name:
            return False
        return dra.is_lower_bound(self.pod)

    def limits_of_all(self) -> Mapping[str, list[LimitOnCard]]:
        """
        Return the limits of each container on every card; a pod that was told a share sees its
        limit as the card by now where KAI's isolator came after that, or the driver holds it.
        """
        found: dict[str, list[LimitOnCard]] = {}
        by_card = self.limits.by_card if isinstance(self.limits, PodLimits) else []
        isolated = (
            isinstance(self.limits, PodLimits)
            and self.limits.library_caps
            and self.limits.first.dialect == kai.SPEC.name
            and self.terms.injecting is Injecting.SET
        )
        for card, limits in by_card:
            for part in limits.parts:
                rows = found.setdefault(part.container, [])
                cards = rows[0].cards if rows else part.cards
                size = part.limit_bytes if isolated else card.memory_bytes
                capability = card.compute_capability
                rows.append(LimitOnCard(part.limit_bytes, cards, size, capability))
        return found


def read_inputs(
    pod: Pod,
    mode: Mode,
    namespace: Mapping[str, str],
    candidates: tuple[CandidateCard, ...],
    reserve_override: int | None,
    node: KnownNode | None,
    largest_bytes: int | None = None,
) -> PlanInputs:
    """
    Read a pod, for the cards it might meet; where nothing tells a card's size, it may be anything
    up to `largest_bytes`, unless that is None.
    """
    options = read_pod_options(pod.annotations, frozenset([item.name for item in pod.containers]))
    texts = {}
    if namespace:
        texts = {key: namespace[key] for key in _NAMESPACE_KEYS if key in namespace}
    namespace_options = read_namespace_options(texts) if texts else _NO_NAMESPACE_OPTIONS
    limits = _limits(pod, options, namespace_options, candidates, largest_bytes)
    return PlanInputs(
        mode=mode,
        pod=pod,
        options=options,
        namespace=namespace_options,
        namespace_texts=texts,
        candidates=candidates,
        limits=limits,
        terms=PodTerms(
            injecting=_injecting(mode, options, limits),
            fenced=isinstance(limits, PodLimits) and limits.fenced,
            bound=False,
            args=options.args,
            asks_args=options.args
            and names.ARGS in pod.annotations
            and names.ARGS not in namespace,
            hook=options.python_hook is not HookCarrier.NONE,
            processes=options.processes,
            headroom=options.headroom,
            reserve_override=reserve_override,
        ),
        node=node,
    )


def at_binding(inputs: PlanInputs) -> PlanInputs:
    """
    Return the same for a pod that exists: nothing can be added to it, and its namespace is not
    asked again, so what was said at creation stays.
    """
    asks = inputs.options.args and NO_SERVER in inputs.pod.annotations.get(names.WARNINGS, "")
    return inputs._replace(terms=inputs.terms._replace(bound=True, asks_args=asks))


def known_node(pod: Pod, node: GpuNode) -> KnownNode:
    """Name a node's cards that a pod may get there."""
    cards = usable_cards(pod, node)
    if not cards:
        return KnownNode(node.name, "unknown", told=False)
    shown = dict.fromkeys(f"{item.model} {shown_memory(item)}" for item in cards)
    return KnownNode(node.name, ", ".join(text.strip() for text in shown))


def _injecting(
    mode: Mode, options: PodOptions, limits: PodLimits | Undeclared | Unreadable
) -> Injecting:
    if not isinstance(limits, PodLimits) or not options.inject:
        return Injecting.NOTHING
    if mode is Mode.OBSERVE:
        return Injecting.GROW if options.growth else Injecting.PLAN
    return Injecting.SET if limits.fenced else Injecting.NOTHING


def _limits(
    pod: Pod,
    options: PodOptions,
    namespace: NamespaceOptions,
    candidates: tuple[CandidateCard, ...],
    largest_bytes: int | None,
) -> PodLimits | Undeclared | Unreadable:
    """
    Work out the limits card by card, reading what is the same on several cards only once.

    A card of which nothing tells the size counts as the largest there is, and where its size makes
    the limit as the smallest too. Where they can be read on some of the cards only, those count:
    whoever binds the pod to another leaves the values as they are.
    """
    readable: list[tuple[CandidateCard, Limits]] = []
    failed: list[Undeclared | Unreadable] = []
    units: Units | None = None
    for card in candidates:
        if units is None or card.units != units:
            units = card.units
            declaration = read_declaration(pod, units)
            differs = len(candidates) > 1 and _differs_by_card(declaration)
            limits = limits_on(declaration, pod, options, namespace, card.memory_bytes)
        elif differs:
            limits = limits_on(declaration, pod, options, namespace, card.memory_bytes)
        if not isinstance(limits, Limits):
            failed.append(limits)
        elif card.memory_bytes is None and largest_bytes is not None:
            ends = [
                (end, each)
                for end in _ends(card, largest_bytes)
                for each in [limits_on(declaration, pod, options, namespace, end.memory_bytes)]
                if isinstance(each, Limits)
            ]
            readable += ends if _differ(ends) else [(card, limits), ends[-1]]
        else:
            readable.append((card, limits))
    unreadable = [item for item in failed if isinstance(item, Unreadable)]
    if not readable:
        return min(unreadable, key=_own_words, default=failed[0])
    library_caps = all(each.library_caps for _, each in readable)
    amounts = [each.limit_bytes for _, each in readable if each.limit_bytes is not None]
    return PodLimits(
        by_card=readable,
        first=readable[0][1],
        limit_bytes=min(amounts, default=None),
        library_caps=library_caps,
        fenced=not library_caps and any(each.enforced for _, each in readable),
        unclear=tuple(dict.fromkeys([item.problem for item in unreadable])),
    )


def _ends(card: CandidateCard, largest_bytes: int) -> tuple[CandidateCard, ...]:
    """Return the smallest and the largest card there is in the place of one that nobody knows."""
    sizes = (min(SMALLEST_MADE, largest_bytes), largest_bytes)
    return tuple([card._replace(memory_bytes=size) for size in sizes])


def _differ(ends: list[tuple[CandidateCard, Limits]]) -> bool:
    """Return whether a card's size makes the limit."""
    return len({(limits.limit_bytes, limits.parts) for _, limits in ends}) > 1


def _own_words(unreadable: Unreadable) -> bool:
    """Return what puts last what is the pod's own fault on every card that tells its unit."""
    return unreadable.own_words


def _differs_by_card(declaration: Declared | Undeclared | Unreadable) -> bool:
    """Return whether an amount is a share of a card, and so another on each."""
    return isinstance(declaration, Declared) and any(
        claim.amount.share is not None for claim in declaration.claims
    )
