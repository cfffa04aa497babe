"""
PURE. From a pod to what becomes of it: the operations, or why there are none, or why not.

Each pass works everything out anew from the pod's own words and compares; nothing that stands on
the pod is believed because it looks like ours. So a second pass over its own result finds nothing
to do, and a forged plan comes to nothing.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from gpufence import names
from gpufence.devices import Reading, with_parts
from gpufence.dialects import Unreadable
from gpufence.mode import Mode
from gpufence.plan import Plan, read_plan, write_plan
from gpufence.pods import read_pod
from gpufence.shape import as_list, as_object, as_texts, objects
from webhook.frameworks.figures import Injecting
from webhook.policy import DriverLimits
from webhook.rewrite.annotations import (
    admissions,
    is_amount,
    may_be_ours,
    no_room,
    remarks,
    settle_annotations,
    values_of,
)
from webhook.rewrite.containers import Starts, own_slots
from webhook.rewrite.decide import decide, try_amounts
from webhook.rewrite.inputs import PodLimits, inputs_for, inputs_held, read_inputs
from webhook.rewrite.neighbours import only_requested, unasked
from webhook.rewrite.patch import (
    Patch,
    change_container,
    keep_last_lines,
    require_label,
    schedule,
)
from webhook.rewrite.python_hook import HookMount, bring_hook, hook_texts, mount_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.policy import WebhookPolicy
    from webhook.rewrite.annotations import AdmittedPod, OwnersAmounts
    from webhook.rewrite.decide import Trial
    from webhook.rewrite.inputs import PlanInputs
    from webhook.rewrite.patch import Operation

__all__ = ["Refusal", "Rewrite", "Unchanged", "rewrite"]

_NO_GPU = "it asks for no GPU memory"
_DONE = "everything is as it should be already"
_WINDOWS = "it runs on Windows, where nothing of gpufence applies"
_MIRROR = "it mirrors a static pod, which the kubelet runs as its file says"
_AT_CREATE = Reading()
_NOTHING: Mapping[str, str] = MappingProxyType({})

MOST_CONTAINERS, MOST_VOLUMES = 64, 4096
MOST_ANNOTATIONS, MOST_MOUNTS, MOST_RESOURCES, MOST_VARIABLES = 4096, 4096, 4096, 8192
"""Far above what anybody runs on a GPU; an API server takes tens of thousands of each."""
MOST_BYTES = 512 * 1024
"""A third of what etcd takes: evictions and kubelets write to a pod, too, as others may."""
_ADDED_BYTES, _ADDED_ITEMS = 256 * 1024, 2048  # what gpufence may make of it
_SMALL_BYTES = 16 * 1024
_ASKED = ("limits", "requests")


class Rewrite(NamedTuple):
    """
    The pod is changed by JSON-patch operations; the warnings are shown to whoever created it.

    The operations hold parts of the pod: whoever applies them changes a copy.
    """

    operations: list[Operation]
    warnings: tuple[str, ...]
    written_plan: str
    summary: str

    @property
    def plan(self) -> Plan:
        """The plan as whoever reads the pod finds it."""
        return read_plan(self.written_plan)


class Unchanged(NamedTuple):
    """The pod stays as it is."""

    reason: str
    warnings: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """The pod is not let in, for a reason its creator can read and act on."""

    message: str


def rewrite(
    pod: dict[str, Any],
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
    profile: OwnersAmounts | None = None,
    claims: Mapping[str, Object | str] = _NOTHING,
) -> Rewrite | Unchanged | Refusal:
    """
    Decide about a pod that is being created, and change it as the operations say; `namespace` are
    the annotations of its namespace, `profile` is its owner's where that is to be applied, `claims`
    are its resource claims or their templates, or why nobody can say what is in them.

    Raises `InvalidError` for what is no pod at all.
    """
    excess = _excess(pod)
    if excess.work or (excess.size and mode is Mode.EVICT):
        return _without_plan(pod, mode, excess.work or excess.size)
    said = _rewrite(pod, mode, namespace, fleet, policy, profile, claims)
    if isinstance(said, Refusal) or not excess.large:
        return said
    if mode is Mode.EVICT:
        size = _excess(pod).size  # by now
        return _refusal(size) if size else said
    return said._replace(warnings=(excess.size, *said.warnings)) if excess.size else said


def _rewrite(
    pod: dict[str, Any],
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: WebhookPolicy,
    profile: OwnersAmounts | None,
    claims: Mapping[str, Object | str],
) -> Rewrite | Unchanged | Refusal:
    """Rewrite a pod that is not too large for that."""
    spec, read = as_object(pod.get("spec"), "spec"), read_pod(pod)
    if read.claims:
        read = with_parts(read, claims, _AT_CREATE)
    if names.MIRROR in read.annotations:
        return Unchanged(_MIRROR)
    system = as_object(spec.get("os"), "spec.os").get("name")
    if "windows" in (system, read.node_selector.get(names.OS)):
        return _left_alone(pod, mode, _WINDOWS)
    starts = Starts()
    read_for = inputs_for if policy.driver_limits is DriverLimits.OFF else inputs_held
    admitted, trial = _first_that_holds(
        admissions(read, namespace, profile),
        lambda admitted: read_for(admitted.pod, mode, namespace, fleet, policy),
        lambda inputs: try_amounts(inputs, pod, policy.hook_source, starts),
    )
    inputs = trial.inputs
    if not isinstance(inputs.limits, PodLimits):
        word = only_requested(spec)
        if word or not may_be_ours(read):
            said = word or unasked(spec)
            return _left_alone(pod, mode, word or _NO_GPU, (said,) if said else ())
    if mode is Mode.EVICT and trial.hard:
        alone = None if trial.unfit else _without_namespace(inputs, namespace, policy)
        if alone is None or try_amounts(alone, pod, policy.hook_source, starts).hard:
            return _refusal(*trial.hard)
    decision = decide(trial, pod, starts)
    own = own_slots(pod, read.annotations) if mode is Mode.OBSERVE else {}
    mounts = [item.hook for item in trial.containers if isinstance(item.hook, HookMount)]
    hooks = hook_texts(mounts[0]) if mounts else {}
    record = {**own, **admitted.defaults, **decision.annotations, **hooks}
    why = no_room(read.annotations, record)
    if why:
        return _without_plan(pod, mode, why, values_of(record))
    patch = _changed(pod, trial, decision.plan, policy)
    settle_annotations(patch, read.annotations, record)
    operations = patch.operations
    warnings = (*decision.warnings, *admitted.standing)
    if not operations:
        return Unchanged(_DONE, warnings)
    return Rewrite(
        operations=operations,
        warnings=(*warnings, *admitted.passing),
        written_plan=record[names.PLAN],
        summary=decision.summary,
    )


class _Excess(NamedTuple):
    """
    What makes a pod more work than any is worth, and what makes it so large that it may never be
    evicted; empty where nothing does. A `large` one may become too large by what is added to it.
    """

    work: str = ""
    size: str = ""
    large: bool = False


_NO_EXCESS = _Excess()


def _excess(pod: dict[str, Any]) -> _Excess:
    """Measure a pod, as far as that is any use; what was changed already may be larger by that."""
    spec = as_object(pod.get("spec"), "spec")
    lists = [spec.get(field) for field in ("initContainers", "containers", "volumes")]
    early, regular, volumes = [len(each) if isinstance(each, list) else 0 for each in lists]
    containers = early + regular
    if containers > MOST_CONTAINERS or volumes > MOST_VOLUMES:
        has = f"it has {containers} containers and {volumes} volumes"
        most = f"at most {MOST_CONTAINERS} and {MOST_VOLUMES}"
        return _Excess(f"{has}; gpufence reads pods of {most}; split it")
    try:
        size = len(orjson.dumps(pod))
    except TypeError:  # no JSON, or of more levels
        size = _SMALL_BYTES + 1
    return _NO_EXCESS if size <= _SMALL_BYTES else _excess_of_large(pod, spec, size)


def _excess_of_large(pod: dict[str, Any], spec: Object, size: int) -> _Excess:
    """Count what only a large pod can have too many of."""
    metadata = as_object(pod.get("metadata"), "metadata")
    annotations = as_object(metadata.get("annotations"), "metadata.annotations")
    containers = [*objects(spec.get("initContainers"), "spec.initContainers")]
    containers += objects(spec.get("containers"), "spec.containers")
    resources = [as_object(each.get("resources"), "resources") for each in containers]
    asked = [as_object(each.get(field), field) for each in resources for field in _ASKED]
    counts = {
        "annotations": (len(annotations), MOST_ANNOTATIONS),
        "mounts": (_total(containers, "volumeMounts"), MOST_MOUNTS),
        "resources": (sum(map(len, asked)), MOST_RESOURCES),
        "variables": (_total(containers, "env"), MOST_VARIABLES),
    }
    changed = names.INJECTED in annotations
    for what, (count, most) in counts.items():
        if count > most + _ADDED_ITEMS * changed:
            has = f"it has {count} {what}"
            return _Excess(f"{has}; gpufence reads pods of at most {most}; take some away")
    most = MOST_BYTES + _ADDED_BYTES * changed
    if size <= most:
        return _Excess(large=True)
    has = f"it takes {size // 1024} KiB, above {most // 1024}"
    why = "near the limit of etcd a pod can neither be evicted nor get a status"
    said = f"{has}: {why}; move long texts of it into ConfigMaps or its images"
    return _Excess(size=said, large=True)


def _total(containers: Iterable[Object], field: str) -> int:
    return sum(len(as_list(each.get(field), field)) for each in containers)


def _refusal(*reasons: str) -> Refusal:
    return Refusal(f"gpufence refuses this pod: {'; also '.join(reasons)}")


def _without_plan(
    pod: dict[str, Any], mode: Mode, why: str, values: Mapping[str, str] = _NOTHING
) -> Rewrite | Unchanged | Refusal:
    """Refuse a pod that nothing can be written on, where that would shed its fence, else say so."""
    if mode is Mode.EVICT:
        return _refusal(why)
    return _left_alone(pod, mode, why, (why,), values)


def _left_alone(
    pod: dict[str, Any],
    mode: Mode,
    reason: str,
    warnings: tuple[str, ...] = (),
    values: Mapping[str, str] = _NOTHING,
) -> Rewrite | Unchanged:
    """
    Decide nothing about a pod, and take from it all the same what only others may write; `values`
    that are right stay for the containers that read them, since an earlier pass may have set them.
    """
    metadata = as_object(pod.get("metadata"), "metadata")
    annotations = as_texts(metadata.get("annotations"), "metadata.annotations")
    patch = Patch(pod)
    if mode is Mode.OBSERVE:
        values = {**values, **own_slots(pod, annotations)}
    stays = {key: text for key, text in values.items() if annotations.get(key) == text}
    dropped = settle_annotations(patch, annotations, stays)
    if not dropped:
        return Unchanged(reason, warnings)
    return Rewrite(
        operations=patch.operations,
        warnings=(*warnings, *remarks(dropped)),
        written_plan=write_plan(Plan(mode, "", None)),
        summary=f"left alone: {reason}",
    )


def _first_that_holds(
    admissions: Iterator[AdmittedPod],
    read: Callable[[AdmittedPod], PlanInputs],
    attempt: Callable[[PlanInputs], Trial],
) -> tuple[AdmittedPod, Trial]:
    """
    Return a pod with the amounts of the first source that can be held to, and what each container
    is told then; of those before it is remarked why they do not count.
    """
    remarks: list[str] = []
    while True:  # the pod's own amounts come last, and nobody else is to blame for those
        admitted = next(admissions)
        inputs = read(admitted)
        if admitted.profile is not None:
            inputs = inputs._replace(profile=admitted.profile)
        problem = inputs.limits.problem if isinstance(inputs.limits, Unreadable) else None
        if admitted.blame and problem is not None and problem.key.startswith(names.MEMORY):
            remarks.insert(0, admitted.blame.format(problem.sentence))
            continue
        trial = attempt(inputs)
        # No pod stays out for what was measured of others.
        if inputs.profile is None or not trial.fault:
            break
        remarks.insert(0, admitted.blame.format(trial.fault))
    if remarks:
        admitted = admitted._replace(standing=(*admitted.standing, *remarks))
    return admitted, trial


def _without_namespace(
    inputs: PlanInputs, namespace: Mapping[str, str], policy: WebhookPolicy
) -> PlanInputs | None:
    """
    Return what a pod would be without its namespace's amounts, None where it has none: what is
    refused for those alone is told to who owns the namespace, and keeps no pod out.
    """
    said = inputs.pod.annotations
    own = {key: text for key, text in said.items() if not is_amount(key, text, namespace)}
    if len(own) == len(said):
        return None
    pod = inputs.pod._replace(annotations=own)
    terms = (inputs.mode, namespace, inputs.candidates, policy.reserve_override, inputs.node)
    return read_inputs(pod, *terms)._replace(driver=inputs.driver)


def _changed(pod: dict[str, Any], trial: Trial, plan: Plan, policy: WebhookPolicy) -> Patch:
    """Change the containers as far as each is told anything, and who schedules the pod."""
    patch, inputs = Patch(pod), trial.inputs
    mounted = False
    wish = inputs.options.oom_message
    keeps_last_lines = inputs.terms.injecting is Injecting.SET if wish is None else wish
    for item in trial.containers:
        injection = item.injection
        if inputs.mode is Mode.OBSERVE:  # the spec stays, opted out or not
            injection = injection._replace(restored={})
        change_container(patch, item.container, injection)
        if isinstance(item.hook, HookMount):
            if not mounted:
                bring_hook(patch, item.hook.carrier)
            mounted = True
            mount_hook(patch, item.container, item.hook.carrier)
        if keeps_last_lines and inputs.options.inject:
            keep_last_lines(patch, item.container)
    if inputs.mode is not Mode.OBSERVE:
        schedule(patch, policy, inputs.pod, plan.dialect)
        if inputs.driver is not None and inputs.driver.requires_label:
            require_label(patch)
    return patch
