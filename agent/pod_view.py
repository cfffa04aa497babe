"""
PURE. From a pod as the API server sends it to what the judge needs to know of it.

Limits are worked out from the pod itself, with the code the webhook uses. The plan on the pod says
what its frameworks were told, which is worth an event; it never decides what the pod may hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agent.model.pod import Cap, Controller, PodLimit, PodOnNode
from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard, assigned_card
from gpufence.devices import Reading, on_card, with_devices
from gpufence.dialects import ANNOTATION_KEYS, Undeclared, Unreadable
from gpufence.errors import GpufenceError
from gpufence.held import held_limits
from gpufence.last_words import out_of_memory
from gpufence.limits import Limits
from gpufence.mode import Mode, effective_mode, namespace_mode
from gpufence.plan import Done, read_plan
from gpufence.pods import read_pod
from gpufence.shape import Object, as_object, as_text, as_texts, objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpufence.annotations import PodOptions
    from gpufence.cards import Card
    from gpufence.dialects import Units
    from gpufence.plan import ContainerPlan, Plan
    from gpufence.pods import Pod

DEFAULT_GRACE_SECONDS: Final = 30

_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_ENDED = frozenset({"Succeeded", "Failed"})
_RUNS: Final = "Running"
_DAY: Final = len("2026-11-19")
_TOLD = frozenset({Done.SET, Done.LOWERED, Done.KEPT})


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


@dataclass(frozen=True, slots=True)
class _Fence:
    limits: Mapping[str, PodLimit]
    undeclared: str = ""
    enforced: bool = True
    measure: str = ""
    assigned: frozenset[str] = frozenset()
    cpu_ignored: frozenset[str] = frozenset()
    asks: bool = False
    shares: int = 1


def read_pod_on_node(
    raw: Object, context: PodContext, claims: ClaimsOfPod = NO_CLAIMS
) -> PodOnNode:
    """
    Read one pod; what is wrong with its words makes it a pod without a limit, never an exception.
    `claims` is what is known of its resource claims.

    Raises:
        InvalidError: it is no pod at all.
    """
    metadata = as_object(raw.get("metadata"), "metadata")
    status = as_object(raw.get("status"), "status")
    spec = as_object(raw.get("spec"), "spec")
    annotations = as_texts(metadata.get("annotations"), "metadata.annotations")
    namespace = as_text(metadata.get("namespace"), "metadata.namespace")
    plan = _plan(annotations)
    uid = as_text(metadata.get("uid"), "metadata.uid")
    fence = _fence(raw, context, plan, Reading(uid, bound=True, cards=claims.cards), claims.found)
    grace = spec.get("terminationGracePeriodSeconds")
    return PodOnNode(
        uid=uid,
        namespace=namespace,
        name=as_text(metadata.get("name"), "metadata.name"),
        mode=effective_mode(namespace_mode(context.labels), context.highest),
        limits=fence.limits,
        undeclared=fence.undeclared,
        enforced=fence.enforced,
        injected=names.INJECTED in annotations,
        terminating=metadata.get("deletionTimestamp") is not None,
        exempt=_exempt(annotations, namespace, status, context),
        static_uid=annotations.get(names.MIRROR, ""),
        containers=dict(_containers(status)),
        controller=_controller(metadata),
        caps=_caps(annotations, plan),
        grace_seconds=grace if isinstance(grace, int) else DEFAULT_GRACE_SECONDS,
        labels=as_texts(metadata.get("labels"), "metadata.labels"),
        assigned=fence.assigned,
        measure=fence.measure,
        ended=status.get("phase") in _ENDED,
        cpu_ignored=fence.cpu_ignored,
        idle_said=_idle_said(status),
        claims=status.get("phase") == _RUNS and fence.asks and _is_wanted(context.labels),
        created=as_text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        shares=fence.shares,
        out_of_memory=_out_of_memory(status),
    )


def _fence(
    raw: Object,
    context: PodContext,
    plan: Plan | None,
    reading: Reading,
    claims: Mapping[str, Object | str],
) -> _Fence:
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
    enforced = True
    undeclared = measure = ""
    for card in context.cards:
        there = by_kind[_kind(pod, card)]
        if isinstance(there, Limits) and there.limit_bytes is not None:
            limits[card.uuid] = _limit(there, there.limit_bytes, _group(pod, card))
            enforced = there.enforced
            measure = f"{there.dialect}, {there.basis}"
        else:
            undeclared = _why(there)
    assigned = _assigned(pod, context.cards)
    ignored = _cpu_ignored(pod, options, plan)
    asks = any(item.gpu for item in pod.containers) or bool(pod.devices)
    asks = asks or not ANNOTATION_KEYS.keys().isdisjoint(pod.annotations)
    return _Fence(limits, undeclared, enforced, measure, assigned, ignored, asks, options.processes)


def _is_wanted(labels: Mapping[str, str]) -> bool:
    """
    Return whether a namespace wants to know of GPUs that are claimed and not used.
    """
    return names.MODE in labels or names.IDLE in labels


def _assigned(pod: Pod, cards: tuple[Card, ...]) -> frozenset[str]:
    """
    Return the cards of its claims, or the one that its scheduler has noted on it, or the only one
    there is.
    """
    claimed = frozenset([each.card.uuid for each in pod.devices if each.card is not None])
    if claimed:
        return claimed
    whole = {card.index: card.uuid for card in cards if not card.mig}
    index = assigned_card(pod)
    if index in whole:
        return frozenset({whole[index]})
    return frozenset(card.uuid for card in cards) if len(cards) == 1 else frozenset()


def _kind(pod: Pod, card: Card) -> tuple[int, str]:
    """
    Return what tells apart the cards on which a pod has different limits.
    """
    return card.memory_bytes, card.uuid if pod.devices else ""


def _group(pod: Pod, card: Card) -> str:
    """
    Name the claim whose memory the pod shares with other pods there; where it has anything else of
    that card, its limit is the sum, and nobody can tell which of it the others hold.
    """
    there = on_card(pod, card.uuid).devices
    return there[0].group if len(there) == 1 else ""


def _limit(limits: Limits, limit_bytes: int, group: str) -> PodLimit:
    parts = {part.container: part.limit_bytes for part in limits.parts}
    known = {name: part for name, part in parts.items() if part is not None}
    return PodLimit(limit_bytes, known, group)


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


def _idle_said(status: Object) -> str:
    """
    Return what our condition says at the moment, nothing where there is none.
    """
    said = [
        as_text(item.get("status"), "status.conditions.status")
        for item in objects(status.get("conditions"), "status.conditions")
        if item.get("type") == names.GPU_IDLE
    ]
    return said[0] if said else ""


def _exempt(
    annotations: Mapping[str, str], namespace: str, status: Object, context: PodContext
) -> str:
    """
    Return why a pod is never evicted. Its priority is no reason: memory is taken at any priority.
    """
    if names.MIRROR in annotations:
        return "it is a static pod, which its kubelet would start again"
    if namespace in context.exempt_namespaces:
        return f"namespace {namespace} is exempt by the operator's word"
    if status.get("phase") in _ENDED:
        return "it has ended, and an eviction would free nothing"
    return ""


def _containers(status: Object) -> Iterator[tuple[str, str]]:
    """
    Yield the containers that the kubelet has started, by id: `containerd://<id>` and the like.
    """
    for key in _STATUSES:
        for position, item in enumerate(objects(status.get(key), f"status.{key}")):
            field = f"status.{key}[{position}]"
            reference = as_text(item.get("containerID"), f"{field}.containerID")
            identity = reference.rpartition("://")[2]
            if identity:
                yield identity, as_text(item.get("name"), f"{field}.name")


def _out_of_memory(status: Object) -> dict[str, str]:
    """
    Return the containers whose last words say that their card's memory was not enough, and when.
    """
    days: dict[str, str] = {}
    for key in _STATUSES:
        for item in objects(status.get(key), f"status.{key}"):
            for when in ("lastState", "state"):
                state = as_object(item.get(when), f"status.{key}.{when}")
                ended = as_object(state.get("terminated"), f"status.{key}.{when}.terminated")
                if out_of_memory(as_text(ended.get("message"), f"status.{key}.{when}.message")):
                    at = as_text(ended.get("finishedAt"), f"status.{key}.{when}.finishedAt")
                    days[as_text(item.get("name"), f"status.{key}.name")] = at[:_DAY]
    return days


def _controller(metadata: Object) -> Controller | None:
    field = "metadata.ownerReferences"
    for item in objects(metadata.get("ownerReferences"), field):
        if item.get("controller") is True:
            return Controller(
                api_version=as_text(item.get("apiVersion"), f"{field}.apiVersion"),
                kind=as_text(item.get("kind"), f"{field}.kind"),
                name=as_text(item.get("name"), f"{field}.name"),
                uid=as_text(item.get("uid"), f"{field}.uid"),
            )
    return None


def _plan(annotations: Mapping[str, str]) -> Plan | None:
    """
    Read what the webhook has decided; nothing where nobody can.
    """
    try:
        return read_plan(annotations[names.PLAN]) if names.PLAN in annotations else None
    except GpufenceError:
        return None


def _caps(annotations: Mapping[str, str], plan: Plan | None) -> dict[str, Cap]:
    """
    Return what each container's processes were told; nothing where the plan does not say.
    """
    if plan is None or annotations.get(names.INJECTED) != names.INJECTED_YES:
        return {}
    caps = {name: _cap(item) for name, item in plan.containers.items()}
    return {name: cap for name, cap in caps.items() if cap is not None}


def _cap(plan: ContainerPlan) -> Cap | None:
    """
    Take the largest figures of a container's settings: which of them its program reads is unknown.
    """
    rows = [item for item in plan.settings if item.done in _TOLD]
    caps = [item.allowance_bytes for item in rows if item.allowance_bytes is not None]
    reserves = [item.reserve_bytes for item in rows if item.reserve_bytes is not None]
    if plan.cap_bytes is None or not caps:
        return None
    return Cap(max(plan.cap_bytes, *caps), max(reserves, default=0))
