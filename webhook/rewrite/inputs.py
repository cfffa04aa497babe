"""PURE. What a decision about a pod depends on: what it asks for, and its limits on every card."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.annotations import (
    HookCarrier,
    NamespaceOptions,
    read_namespace_options,
    read_pod_options,
)
from gpufence.candidates import usable_cards
from gpufence.cards import SMALLEST_MADE, cards_by_labels, shown_memory
from gpufence.dialects import Declared, Undeclared, Unreadable, dra, kai, read_declaration
from gpufence.limits import Limits, limits_on
from gpufence.mode import Mode
from gpufence.reserves import reserve_of
from webhook.driver_limits import (
    BY_LABEL,
    Held,
    has_label,
    requiring_label,
    seen_by_held,
    unlabelled,
)
from webhook.driver_limits.amounts import PodParts, held_by_driver, kinds_of
from webhook.engines.words import NO_SERVER
from webhook.frameworks.figures import Injecting, LimitOnCard, PodTerms
from webhook.policy import DriverLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import PodOptions
    from gpufence.candidates import CandidateCard
    from gpufence.dialects import Units
    from gpufence.errors import Problem
    from gpufence.nodes import GpuNode
    from gpufence.plan import ProfileUsed
    from gpufence.pods import Pod
    from gpufence.reserves import ByModel
    from webhook.fleet import Fleet
    from webhook.policy import WebhookPolicy

_NAMESPACE_KEYS = (
    *(names.MAX_MEMORY, names.MAX_BURST),
    *(names.IMPLIED_LIMITS, names.UNDECLARED_USE),
)
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
    the smallest limit there is, `request_bytes` the smallest request of a pod that bursts.
    `fenced` is True where gpufence is to hold the pod to it.
    """

    by_card: list[tuple[CandidateCard, Limits]]
    first: Limits
    limit_bytes: int | None
    library_caps: bool
    fenced: bool
    unclear: tuple[Problem, ...]
    request_bytes: int | None = None


class PlanInputs(NamedTuple):
    """
    A pod as it counts, what its annotations ask for, and its limits or why there are none.

    `namespace_texts` are the namespace's annotations that count without standing on the pod. `node`
    is known only at binding, or where the pod names its node itself. `profile` is whose amounts the
    pod holds to. `driver` is what the driver is to hold its containers to, where it is to do that.
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
    driver: Held | None = None

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
        by_card = self.limits.by_card if isinstance(self.limits, PodLimits) else []
        found = {} if self.driver is None else seen_by_held(by_card, self.driver)
        isolated = (
            isinstance(self.limits, PodLimits)
            and self.limits.library_caps
            and self.limits.first.dialect == kai.SPEC.name
            and self.terms.injecting is Injecting.SET
        )
        for card, limits in by_card:
            for part in limits.parts:
                rows = found.setdefault(part.container, [])
                if rows and rows[0].driver:
                    continue
                cards = rows[0].cards if rows else part.cards
                size = part.limit_bytes if isolated else card.memory_bytes
                capability = card.compute_capability
                request = part.request_bytes if part.request_bytes != part.limit_bytes else None
                row = LimitOnCard(part.limit_bytes, cards, size, capability, card.reserve_bytes)
                rows.append(row if request is None else row._replace(request_bytes=request))
        return found


def inputs_for(
    pod: Pod,
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
) -> PlanInputs:
    """Read a pod that is being created, for every card of the fleet that it may meet."""
    node = fleet.node(pod.node_name) if pod.node_name else None
    default = policy.default if node is None else policy.default._replace(memory_bytes=None)
    candidates = fleet.candidates(pod, default, policy.measured)
    if not pod.node_name and (pod.node_selector or fleet.grows):
        candidates = _with_unborn(candidates, pod, policy, grows=fleet.grows)
    strange = [card.memory_bytes is None for card in candidates]
    known = known_node(pod, node) if node is not None and not any(strange) else None
    largest = None if all(strange) and not pod.node_name else policy.largest_bytes
    terms = (mode, namespace, candidates, policy.reserve_override, known, largest)
    return read_inputs(pod, *terms)


def inputs_held(
    pod: Pod,
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
) -> PlanInputs:
    """
    Do the same where the driver is to hold what it can. Where only nodes with the label can, a pod
    that is held gets no others; with `auto` it is held only if it may get no others anyway.
    """
    terms = (mode, namespace, fleet, policy)
    inputs = inputs_for(pod, *terms)
    limits = inputs.limits
    if not (isinstance(limits, PodLimits) and limits.fenced and inputs.options.inject):
        return inputs
    labelled = policy.driver_limits is DriverLimits.LABELLED
    there = requiring_label(pod) if labelled else pod
    if isinstance(there, str):
        return inputs._replace(driver=Held(why_not=there))
    nodes = [node for node in fleet.nodes(there) if not labelled or has_label(node)]
    by_label = policy.driver_limits in BY_LABEL
    why_not = unlabelled(there, nodes, grows=fleet.grows and not labelled) if by_label else ""
    found = why_not or kinds_of(there, nodes, policy.default, grows=fleet.grows)
    known = {(card.units, card.memory_bytes): each for card, each in limits.by_card}
    parts = PodParts(there, inputs.options, inputs.namespace, policy.largest_bytes, known)
    held = held_by_driver(parts, [part.container for part in limits.first.parts], found)
    if held.limits and there is not pod:
        return inputs_for(there, *terms)._replace(driver=held._replace(requires_label=True))
    return inputs._replace(driver=held)


def _with_unborn(
    candidates: tuple[CandidateCard, ...], pod: Pod, policy: WebhookPolicy, *, grows: bool
) -> tuple[CandidateCard, ...]:
    """
    Add the card of a node that is not there yet, where nodes come and go, as far as the pod's
    selector tells it.
    """
    unknown = policy.default._replace(memory_bytes=None)
    terms = (candidates[0].units, unknown, policy.measured)
    unborn = _selected(pod, *terms) if pod.node_selector else ()
    if unborn and candidates == (policy.default,):
        return unborn
    return tuple(dict.fromkeys((*candidates, *(unborn or (unknown,))))) if grows else candidates


def _selected(
    pod: Pod, units: Units, unknown: CandidateCard, measured: ByModel
) -> tuple[CandidateCard, ...]:
    """Return the cards that a pod's own selector asks for, whatever nodes there are."""
    whole = [card for card in cards_by_labels(pod.node_selector)[:1] if not card.mig]
    sizes = [size for card in whole for size in (card.memory_bytes, card.most_bytes) if size]
    reserve = reserve_of(whole[0].full_model, measured) if sizes and measured else None
    unborn = unknown._replace(units=units, reserve_bytes=reserve)
    return tuple([unborn._replace(memory_bytes=size) for size in sizes])


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
            bursts=options.burst is not None,
            burst_servers=options.burst_servers,
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
            differs = len(candidates) > 1 and _differs_by_card(declaration, options)
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
        # What is the pod's own fault on every card that tells its unit comes last.
        return min(unreadable, key=attrgetter("own_words"), default=failed[0])
    library_caps = all(each.library_caps for _, each in readable)
    amounts = [each.limit_bytes for _, each in readable if each.limit_bytes is not None]
    bursts = any(each.promised_bytes is not None for _, each in readable)
    return PodLimits(
        by_card=readable,
        first=readable[0][1],
        limit_bytes=min(amounts, default=None),
        library_caps=library_caps,
        fenced=not library_caps and any(each.enforced for _, each in readable),
        unclear=tuple(dict.fromkeys([item.problem for item in unreadable])),
        request_bytes=_smallest_request(readable) if bursts else None,
    )


def _smallest_request(readable: list[tuple[CandidateCard, Limits]]) -> int | None:
    known = [each.request_bytes for _, each in readable if each.request_bytes is not None]
    return min(known, default=None)


def _ends(card: CandidateCard, largest_bytes: int) -> tuple[CandidateCard, ...]:
    """Return the smallest and the largest card there is in the place of one that nobody knows."""
    sizes = (min(SMALLEST_MADE, largest_bytes), largest_bytes)
    return tuple([card._replace(memory_bytes=size) for size in sizes])


def _differ(ends: list[tuple[CandidateCard, Limits]]) -> bool:
    """Return whether a card's size makes the limit."""
    return len({(limits.limit_bytes, limits.parts) for _, limits in ends}) > 1


def _differs_by_card(declaration: Declared | Undeclared | Unreadable, options: PodOptions) -> bool:
    """Return whether an amount is a share of a card, or bound by it, and so another on each."""
    return options.burst is not None or (
        isinstance(declaration, Declared)
        and any(claim.amount.share is not None for claim in declaration.claims)
    )
