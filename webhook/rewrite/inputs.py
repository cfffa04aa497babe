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
from gpufence.dialects import Declared, Undeclared, Unreadable, dra, read_declaration
from gpufence.limits import Limits, limits_on
from gpufence.mode import Mode
from gpufence.quantity import write_mebibytes
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

_NAMESPACE_KEYS = (names.MAX_MEMORY, names.IMPLIED_LIMITS)
_NO_NAMESPACE_OPTIONS = NamespaceOptions()


class KnownNode(NamedTuple):
    """
    Where the pod will run: the node, and its cards as people know them.
    """

    name: str
    cards: str


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

    def limits_of(self, container: str) -> tuple[LimitOnCard, ...]:
        """
        Return the limits of one container on every card.
        """
        by_card = self.limits.by_card if isinstance(self.limits, PodLimits) else []
        rows: list[LimitOnCard] = []
        for card, limits in by_card:
            for part in limits.parts:
                if part.container == container:
                    cards = rows[0].cards if rows else part.cards
                    size, capability = card.memory_bytes, card.compute_capability
                    rows.append(LimitOnCard(part.limit_bytes, cards, size, capability))
        return tuple(rows)


def read_inputs(
    pod: Pod,
    mode: Mode,
    namespace: Mapping[str, str],
    candidates: tuple[CandidateCard, ...],
    reserve_override: int | None,
    node: KnownNode | None,
) -> PlanInputs:
    """
    Read a pod, for the cards it might meet.
    """
    options = read_pod_options(pod.annotations, frozenset([item.name for item in pod.containers]))
    texts = {}
    if namespace:
        texts = {key: namespace[key] for key in _NAMESPACE_KEYS if key in namespace}
    namespace_options = read_namespace_options(texts) if texts else _NO_NAMESPACE_OPTIONS
    limits = _limits(pod, options, namespace_options, candidates)
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
            bound=node is not None,
            args=options.args,
            hook=options.python_hook is not HookCarrier.NONE,
            processes=options.processes,
            headroom=options.headroom,
            reserve_override=reserve_override,
        ),
        node=node,
    )


def known_node(pod: Pod, node: GpuNode) -> KnownNode:
    """Name a node's cards that a pod may get there."""
    cards = usable_cards(pod, node)
    shown = dict.fromkeys(f"{item.model} {write_mebibytes(item.memory_bytes)}" for item in cards)
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
) -> PodLimits | Undeclared | Unreadable:
    """
    Work out the limits card by card, reading what is the same on several cards only once.

    Where they can be read on some of the cards only, those count: whoever binds the pod to another
    leaves the values as they are.
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
        if isinstance(limits, Limits):
            readable.append((card, limits))
        else:
            failed.append(limits)
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


def _own_words(unreadable: Unreadable) -> bool:
    """Return what puts last what is the pod's own fault on every card that tells its unit."""
    return unreadable.own_words


def _differs_by_card(declaration: Declared | Undeclared | Unreadable) -> bool:
    """Return whether an amount is a share of a card, and so another on each."""
    return isinstance(declaration, Declared) and any(
        claim.amount.share is not None for claim in declaration.claims
    )
