"""PURE. The fence around one pod of this node: what it may hold on each card, and why so."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.pod import PodLimit
from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard, assigned_card
from gpufence.devices import Reading, has_admin_access, on_card, with_devices
from gpufence.dialects import Undeclared, Unreadable, declares, nvidia
from gpufence.fences import Fence
from gpufence.held import UNASKED, held_limits
from gpufence.limits import Limits
from gpufence.pods import read_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import PodOptions
    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.mode import Mode
    from gpufence.plan import Plan
    from gpufence.pods import Pod
    from gpufence.shape import Object


@dataclass(frozen=True, slots=True)
class PodContext:
    """
    What counts for a pod beside itself: its namespace's words, the kill switch, and this node's
    cards and units.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    highest: Mode
    cards: tuple[Card, ...]
    units: Units
    exempt_namespaces: frozenset[str] = frozenset()


class ClaimsOfPod(NamedTuple):
    """
    A pod's resource claims by its own names for them, or why they cannot be read, and the cards of
    this node as its DRA driver calls them.
    """

    found: Mapping[str, Object | str] = MappingProxyType({})
    cards: Mapping[str, Card] = MappingProxyType({})


NO_CLAIMS: Final = ClaimsOfPod()
_NOTHING: Final = PodLimit(1)  # in bytes; zero would read as no limit


@dataclass(frozen=True, slots=True)
class PodFence:
    limits: Mapping[str, PodLimit]
    undeclared: str = ""
    enforced: bool = True
    measure: str = ""
    assigned: frozenset[str] = frozenset()
    cpu_ignored: frozenset[str] = frozenset()
    asks: bool = False
    shares: int = 1
    unasked: bool = False


def fence_of(
    raw: Object,
    context: PodContext,
    plan: Plan | None,
    reading: Reading,
    claims: Mapping[str, Object | str],
) -> PodFence:
    """
    Work out the limit on each card; cards of one size have one limit, but for those that claims
    tell apart.
    """
    pod = with_devices(read_pod(raw), claims, reading)
    options = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    words = read_namespace_options(context.annotations)
    by_kind = {
        _kind(pod, card): held_limits(
            on_card(pod, card.uuid), options, words, CandidateCard(context.units, card.memory_bytes)
        )
        for card in context.cards
    }
    limits: dict[str, PodLimit] = {}
    enforced: list[bool] = []
    undeclared = measure = ""
    unasked = False
    others = _of_others(pod, context.cards, claims)
    for card in context.cards:
        there = by_kind[_kind(pod, card)]
        if isinstance(there, Limits) and there.limit_bytes is not None:
            limits[card.uuid] = (
                _NOTHING
                if card.uuid in others
                else _limit(there, there.limit_bytes, _claims(pod, card))
            )
            enforced.append(there.enforced)
            measure = f"{there.dialect}, {there.basis}"
            unasked = there.dialect == UNASKED
        else:
            undeclared = _why(there)
    assigned = _assigned(pod, context.cards)
    ignored = _cpu_ignored(pod, options, plan)
    asks = any(item.gpu for item in pod.containers) or bool(pod.devices)
    asks = asks or any(map(declares, pod.annotations))
    # A whole card is nothing to be enforced, and sheds no fence on another.
    fenced = any(enforced) or not enforced
    return PodFence(
        limits, undeclared, fenced, measure, assigned, ignored, asks, options.processes, unasked
    )


def _of_others(
    pod: Pod, cards: tuple[Card, ...], claims: Mapping[str, Object | str]
) -> frozenset[str]:
    """
    Return the cards of which a pod has nothing for certain, since all that its claims give it is on
    others; none where it may look after any card, or its devices are its limits.
    """
    here = {card.uuid for card in cards}
    mine = {"" if each.card is None else each.card.uuid for each in pod.devices}
    fenced = any(each.amount.known and not each.amount.share for each in pod.devices)
    if not fenced or not mine <= here or has_admin_access(pod, claims):
        return frozenset()
    parents = {card.mig.parent for card in cards if card.mig and card.uuid in mine}
    return frozenset(
        card.uuid
        for card in cards
        if card.uuid not in mine | parents and not (card.mig and card.mig.parent in mine)
    )


def _assigned(pod: Pod, cards: tuple[Card, ...]) -> frozenset[str]:
    """
    Return the cards of its claims, or the one that its scheduler has noted on it, or the only one
    there is.
    """
    here = {card.uuid for card in cards}
    claimed = [each.card.uuid for each in pod.devices if each.card is not None]
    if not here.isdisjoint(claimed):
        return frozenset(here.intersection(claimed))
    whole = {card.index: card.uuid for card in cards if not card.mig}
    index = assigned_card(pod)
    if index in whole:
        return frozenset({whole[index]})
    return frozenset(card.uuid for card in cards) if len(cards) == 1 else frozenset()


def _kind(pod: Pod, card: Card) -> tuple[int, str]:
    """Return what tells apart the cards on which a pod has different limits."""
    return card.memory_bytes, card.uuid if pod.devices else ""


def _claims(pod: Pod, card: Card) -> tuple[tuple[str, int], ...]:
    """
    Return the requests of claims by which the pod's containers have that card, and what each has
    there; nothing where one of them is no amount, which nobody is held to.
    """
    amounts: dict[str, int] = {}
    for device in on_card(pod, card.uuid).devices:
        if any(item.uses(device.claim, device.request) for item in pod.containers):
            if not device.amount.known or device.amount.share:
                return ()
            name = f"{device.group}/{device.request}"
            amounts[name] = amounts.get(name, 0) + device.amount.bytes
    return tuple(amounts.items())


def _limit(limits: Limits, limit_bytes: int, claims: tuple[tuple[str, int], ...]) -> PodLimit:
    parts = {part.container: part.limit_bytes for part in limits.parts}
    known = {name: part for name, part in parts.items() if part is not None}
    share = min(limits.promised_bytes or 0, limit_bytes)
    fence = Fence.AGENT
    if limits.library_caps:  # of NVIDIA's and GKE's sharing MPS does
        fence = Fence.MPS if limits.dialect == nvidia.SPEC.name else Fence.LIBRARY
    return PodLimit(limit_bytes, known, claims, share_bytes=share, fence=fence)


def _why(limits: Limits | Undeclared | Unreadable) -> str:
    if isinstance(limits, Unreadable):
        return limits.problem.sentence
    return limits.reason if isinstance(limits, Undeclared) else "its amount is not known"


def _cpu_ignored(pod: Pod, options: PodOptions, plan: Plan | None) -> frozenset[str]:
    """
    Return the containers whose CPU says nothing: all by the pod's word, else the engines that spin.
    """
    if options.cpu_counts is not None:
        names_of = frozenset(item.name for item in pod.containers)
        return frozenset() if options.cpu_counts else names_of
    if plan is None:
        return frozenset()
    return frozenset(name for name, item in plan.containers.items() if item.runs in names.SPINNING)
