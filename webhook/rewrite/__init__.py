"""
PURE. From a pod to what becomes of it: the operations, or why there are none, or why not.

Each pass works everything out anew from the pod's own words and compares; nothing that stands on
the pod is believed because it looks like ours. So a second pass over its own result finds nothing
to do, and a forged plan comes to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpufence import names
from gpufence.mode import Mode
from gpufence.pods import read_pod
from gpufence.shape import as_object
from webhook.operations import Patch
from webhook.rewrite.annotations import admit, fits, may_be_ours, settle_annotations
from webhook.rewrite.decide import decide
from webhook.rewrite.inputs import PodLimits, known_node, read_inputs
from webhook.rewrite.patch import change_container, schedule
from webhook.rewrite.python_hook import HookMount, mount_hook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.plan import Plan
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.operations import Operation
    from webhook.policy import WebhookPolicy
    from webhook.rewrite.decide import PodDecision
    from webhook.rewrite.inputs import PlanInputs

__all__ = ["Refusal", "Rewrite", "Unchanged", "rewrite"]

_NO_GPU = "it asks for no GPU memory"
_DONE = "everything is as it should be already"
_NO_ROOM = "its annotations leave no room for those of gpufence; shorten them to 200 KiB"
_WINDOWS = "it runs on Windows, where nothing of gpufence applies"
_MIRROR = "it mirrors a static pod, which the kubelet runs as its file says"


class Rewrite(NamedTuple):
    """
    The pod is changed by JSON-patch operations; the warnings are shown to whoever created it.

    The operations hold parts of the pod: whoever applies them changes a copy.
    """

    operations: list[Operation]
    warnings: tuple[str, ...]
    plan: Plan
    summary: str


class Unchanged(NamedTuple):
    """
    The pod stays as it is.
    """

    reason: str
    warnings: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """
    The pod is not let in, for a reason its creator can read and act on.
    """

    message: str


def rewrite(
    pod: dict[str, Any],
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
) -> Rewrite | Unchanged | Refusal:
    """
    Decide about a pod that is being created, and change it as the operations say; `namespace` are
    the annotations of its namespace.

    Raises `InvalidError` for what is no pod at all.
    """
    read = read_pod(pod)
    spec = as_object(pod.get("spec"), "spec")
    why = _out_of_scope(spec, read)
    if why:
        return Unchanged(why)
    admitted = admit(read, namespace)
    inputs = _inputs(admitted.pod, mode, namespace, fleet, policy)
    if not isinstance(inputs.limits, PodLimits) and not may_be_ours(read):
        return Unchanged(_NO_GPU)
    decision = decide(inputs, pod, policy.hook_source)
    if mode is Mode.EVICT and decision.hard:
        return Refusal(f"gpufence refuses this pod: {'; also '.join(decision.hard)}")
    patch = _changed(pod, inputs, decision, policy)
    record = {**admitted.defaults, **decision.annotations, **_hook_source(decision)}
    settle_annotations(patch, read.annotations, record)
    warnings = (*decision.warnings, *admitted.standing)
    if not patch.operations:
        return Unchanged(_DONE, warnings)
    if not fits(read.annotations, record):
        return Unchanged(_NO_ROOM, (_NO_ROOM,))
    return Rewrite(
        operations=patch.operations,
        warnings=(*warnings, *admitted.passing),
        plan=decision.plan,
        summary=decision.summary,
    )


def _out_of_scope(spec: Object, pod: Pod) -> str:
    """
    Return why a pod is none of ours; empty where it is.
    """
    if names.MIRROR in pod.annotations:
        return _MIRROR
    system = as_object(spec.get("os"), "spec.os").get("name")
    if "windows" in (system, pod.node_selector.get(names.OS)):
        return _WINDOWS
    return ""


def _inputs(
    pod: Pod, mode: Mode, namespace: Mapping[str, str], fleet: Fleet, policy: WebhookPolicy
) -> PlanInputs:
    """
    Read a pod that is being created, for every card of the fleet that it may meet.
    """
    candidates = fleet.candidates(pod, policy.default)
    node = fleet.node(pod.node_name) if pod.node_name else None
    if node is not None and any(card.memory_bytes is None for card in candidates):
        node = None
    known = known_node(pod, node) if node is not None else None
    return read_inputs(pod, mode, namespace, candidates, policy.reserve_override, known)


def _changed(
    pod: dict[str, Any], inputs: PlanInputs, decision: PodDecision, policy: WebhookPolicy
) -> Patch:
    """
    Change the containers as far as each is told anything, and who schedules the pod.
    """
    patch = Patch(pod)
    for item in decision.containers:
        change_container(patch, item.container, item.injection)
        if isinstance(item.hook, HookMount):
            mount_hook(patch, item.container)
    if inputs.mode is not Mode.OBSERVE:
        schedule(patch, policy, inputs)
    return patch


def _hook_source(decision: PodDecision) -> dict[str, str]:
    """
    Return the annotation that the hook is mounted from, where any container mounts it.
    """
    mounts = [item.hook for item in decision.containers if isinstance(item.hook, HookMount)]
    return {names.SITECUSTOMIZE: mounts[0].source} if mounts else {}
