"""
PURE. From a pod as the API server sends it to what the judge needs to know of it.

Limits are worked out from the pod itself, with the code the webhook uses. The plan on the pod says
what its frameworks were told, which is worth an event; it never decides what the pod may hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.fence import NO_CLAIMS, ClaimsOfPod, PodContext, fence_of
from agent.model.pod import Cap, ContainerFailure, Controller, DriverLimit, PodOnNode
from gpufence import names
from gpufence.capped import given_of, read_endings
from gpufence.devices import Reading
from gpufence.errors import GpufenceError
from gpufence.mode import effective_mode, namespace_mode
from gpufence.plan import FRACTIONS, Done, driver_bytes, read_plan
from gpufence.quantity import MIB
from gpufence.shape import Object, as_object, as_text, as_texts, objects
from gpufence.share import CAP_SLACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent.model.pod import PodLimit
    from gpufence.plan import ContainerPlan, Plan

DEFAULT_GRACE_SECONDS: Final = 30

_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_CONTAINERS = ("containers", "initContainers")
_ENDED = frozenset({"Succeeded", "Failed"})
_RUNS: Final = "Running"
_TOLD = frozenset({Done.SET, Done.LOWERED, Done.KEPT})


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
    fence = fence_of(raw, context, plan, Reading(uid, bound=True, cards=claims.cards), claims.found)
    grace = spec.get("terminationGracePeriodSeconds")
    failures = tuple(_failures(status, annotations, plan))
    variables = any("env" in item for key in _CONTAINERS for item in objects(spec.get(key), key))
    return PodOnNode(
        uid=uid,
        namespace=namespace,
        name=as_text(metadata.get("name"), "metadata.name"),
        mode=effective_mode(namespace_mode(context.labels), context.highest),
        limits=fence.limits,
        told_elsewhere=_told_elsewhere(annotations, plan, context, fence.limits),
        told_larger=_told_larger(annotations, plan, context, fence.limits),
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
        idle_said=_said(status, names.GPU_IDLE),
        memory_said=_said(status, names.GPU_MEMORY),
        claims=status.get("phase") == _RUNS and fence.asks and _is_wanted(context.labels),
        created=as_text(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        shares=fence.shares,
        of_operator=_is_operators(spec, context.labels),
        unasked=fence.unasked,
        failures=failures,
        driver=_driver_limits(spec, plan, failures) if variables else {},
    )


def _is_operators(spec: Object, labels: Mapping[str, str]) -> bool:
    """
    Return whether a pod is the operator's by what it is: no namespace under PodSecurity's baseline,
    which every tenant's should be, lets a pod mount a path of its node.
    """
    volumes = objects(spec.get("volumes"), "spec.volumes")
    return names.MODE not in labels and any("hostPath" in item for item in volumes)


def _is_wanted(labels: Mapping[str, str]) -> bool:
    """Return whether a namespace wants to know of GPUs that are claimed and not used."""
    return names.MODE in labels or names.IDLE in labels


def _said(status: Object, kind: str) -> str:
    """Return what a condition of ours says at the moment, nothing where there is none."""
    said = [
        as_text(item.get("status"), "status.conditions.status")
        for item in objects(status.get("conditions"), "status.conditions")
        if item.get("type") == kind
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


def _failures(
    status: Object, annotations: Mapping[str, str], plan: Plan | None
) -> Iterator[ContainerFailure]:
    told = {} if plan is None or not _was_told(annotations) else plan.containers
    for ending in read_endings(status):
        planned = told.get(ending.container)
        yield ContainerFailure(ending, None if planned is None else given_of(planned))


def _driver_limits(
    spec: Object, plan: Plan | None, failures: Iterable[ContainerFailure]
) -> dict[str, DriverLimit]:
    """Return what containers ask the driver for; where they are ours, both variables are there."""
    refused = {one.ending.container: one.ending.refused for one in failures}
    found = {}
    for key in _CONTAINERS:
        for item in objects(spec.get(key), f"spec.{key}"):
            env = {each.get("name"): each.get("value") for each in objects(item.get("env"), "env")}
            if names.DRIVER_LIMIT in env:
                name = as_text(item.get("name"), f"spec.{key}.name")
                text = str(env[names.DRIVER_LIMIT])
                limit = int(text) * MIB if text.isascii() and text.isdecimal() else None
                planned = None if plan is None else plan.containers.get(name)
                written = None if planned is None else driver_bytes(planned)
                ours = env.get(names.DRIVER_REQUEST) == "0" and limit == written is not None
                found[name] = DriverLimit(limit, ours, refused.get(name, ""))
    return found


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
    """Read what the webhook has decided; nothing where nobody can."""
    try:
        return read_plan(annotations[names.PLAN]) if names.PLAN in annotations else None
    except GpufenceError:
        return None


def _caps(annotations: Mapping[str, str], plan: Plan | None) -> dict[str, Cap]:
    """Return what each container's processes were told; nothing where the plan does not say."""
    if plan is None or not _was_told(annotations):
        return {}
    caps = {name: _cap(item) for name, item in plan.containers.items()}
    return {name: cap for name, cap in caps.items() if cap is not None}


def _told_elsewhere(
    annotations: Mapping[str, str],
    plan: Plan | None,
    context: PodContext,
    limits: Mapping[str, PodLimit],
) -> dict[str, int]:
    """
    Return what a pod takes of each card that keeps to the fractions it was told, where nobody has
    made them exact for its node and that is more than its limit.
    """
    if plan is None or names.NODE in annotations or not _was_told(annotations):
        return {}
    # Where the driver holds a container, fractions are of its limit.
    told = [item for item in plan.containers.values() if driver_bytes(item) is None]
    sums = {
        card.uuid: sum([_takes(item, card.memory_bytes) for item in told]) for card in context.cards
    }
    return {
        uuid: amount
        for uuid, amount in sums.items()
        if uuid in limits and amount > limits[uuid].limit_bytes
    }


def _told_larger(
    annotations: Mapping[str, str],
    plan: Plan | None,
    context: PodContext,
    limits: Mapping[str, PodLimit],
) -> dict[str, int]:
    """
    Return the memory of the card that a pod was told fractions of, by the cards of this node on
    which they are too little: nothing told the size of these when the pod was bound.
    """
    if plan is None or names.NODE in annotations or not _was_told(annotations):
        return {}
    rows = [row for item in plan.containers.values() if item.kept for row in _fractions(item)]
    sizes = {
        card.uuid: [told for told, cap in rows if cap - cap * card.memory_bytes // told > CAP_SLACK]
        for card in context.cards
        if card.uuid in limits
    }
    return {uuid: max(told) for uuid, told in sizes.items() if told}


def _fractions(plan: ContainerPlan) -> Iterator[tuple[int, int]]:
    """Yield card and cap of each fraction that a container was told, and may be heard."""
    for item in plan.settings:
        heard = not plan.reads or item.env in plan.reads
        if heard and item.done in _TOLD and item.form in FRACTIONS and item.card_bytes:
            yield item.card_bytes, item.allowance_bytes or 0


def _takes(plan: ContainerPlan, card_bytes: int) -> int:
    """Return what the processes of a container take of a card by the largest fraction there is."""
    each = [
        (item.allowance_bytes or 0) * card_bytes // item.card_bytes + (item.reserve_bytes or 0)
        for item in plan.settings
        if item.done in _TOLD and item.form in FRACTIONS and item.card_bytes
    ]
    return plan.processes * (max(each) + CAP_SLACK) if each else 0


def _was_told(annotations: Mapping[str, str]) -> bool:
    return annotations.get(names.INJECTED) == names.INJECTED_YES


def _cap(plan: ContainerPlan) -> Cap | None:
    """
    Take the largest figures of a container's settings: which of them its program reads is unknown.
    """
    rows = [item for item in plan.settings if item.done in _TOLD]
    caps = [item.allowance_bytes for item in rows if item.allowance_bytes is not None]
    reserves = [item.reserve_bytes for item in rows if item.reserve_bytes is not None]
    if plan.cap_bytes is None or not caps:
        return None
    return Cap(max(plan.cap_bytes, *caps), max(reserves, default=0), plan.kept)
