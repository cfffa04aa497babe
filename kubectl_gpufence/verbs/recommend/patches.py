"""
PURE. Targets as patches of the objects that make the pods, for Git: nothing here changes a cluster.

A patch says a target by the system that counts the pod's memory: its own resource in its own unit,
rounded up to whole ones, or gpufence's annotation where nothing else says an amount.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.dialects import SPECS
from gpufence.pods import ContainerKind, read_pod
from gpufence.quantity import write_bytes
from gpufence.shape import as_object, objects
from gpufence.text import limit_mebibytes
from kube.kinds import ApiKind
from kubectl_gpufence.verbs.recommend.lines import title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.dialects import Units
    from gpufence.need import NeedSummary
    from gpufence.pods import Container, Pod
    from gpufence.shape import Object


_TEMPLATE = ("spec", "template")
TEMPLATES: Final = {
    ApiKind("apps/v1", "Deployment", "deployments"): _TEMPLATE,
    ApiKind("apps/v1", "StatefulSet", "statefulsets"): _TEMPLATE,
    ApiKind("apps/v1", "DaemonSet", "daemonsets"): _TEMPLATE,
    ApiKind("apps/v1", "ReplicaSet", "replicasets"): _TEMPLATE,
    ApiKind("batch/v1", "CronJob", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""The kinds that make pods from a template that may change, and where in them that is."""

OWNER_KINDS: Final = {kind.kind: kind for kind in TEMPLATES}
_HUNDREDTHS: Final = 100
_UNIT_BYTES: Final = {key: unit for spec in SPECS for key, unit in spec.unit_bytes.items()}
_CAPPED: Final = frozenset(
    resource
    for spec in SPECS
    for resource in (*spec.unit_bytes, *spec.percentages)
    if spec.library_caps
)
_PERCENTAGES: Final = frozenset(resource for spec in SPECS for resource in spec.percentages)


class OwnerPatch(NamedTuple):
    """A strategic merge patch of one owner, with what people should read beside it."""

    namespace: str
    kind: str
    name: str
    body: Mapping[str, object]
    comments: tuple[str, ...]

    @property
    def command(self) -> str:
        resource = self.kind.lower()
        return (
            f"kubectl -n {self.namespace} patch {resource} {self.name} --type strategic "
            "--patch-file FILE"
        )


def targets_of(items: Sequence[NeedSummary]) -> dict[str, int]:
    """
    Return each container's target: the largest over the models of card, none where one has none.
    """
    targets: dict[str, int | None] = {}
    for item in items:
        name, more = item.key.container, item.target_bytes
        before = targets.get(name, 0)
        targets[name] = None if before is None or more is None else max(before, more)
    return {name: target for name, target in targets.items() if target}


def requests_of(items: Sequence[NeedSummary]) -> dict[str, int]:
    """Return what each container requests beside a burst: its target where no less is enough."""
    enough = [
        item._replace(target_bytes=item.target_bytes and (item.request_bytes or item.target_bytes))
        for item in items
    ]
    return targets_of(enough)


def patch_of(
    items: Sequence[NeedSummary], raw: Object, nodes: NodeWords, *, burst: bool = False
) -> tuple[OwnerPatch | None, tuple[str, ...]]:
    """
    Make the patch of one owner, as the API server has it, and say of which containers no amount can
    be written. None where everything is said already. With `burst`, or where it does so already, a
    pod requests what is enough most of the time, and may use its target.

    Raises:
        InvalidError: its template cannot be read.
    """
    key = items[0].key
    kind = OWNER_KINDS[key.kind]
    template = _template(raw, TEMPLATES[kind])
    pod = read_pod(template)
    targets = targets_of(items)
    requests = targets
    if (burst or names.BURST in pod.annotations) and not _is_capped(pod):
        requests = requests_of(items)
    change = wanted(pod, requests, nodes)
    if requests != targets and not change.unsaid:
        change = change._replace(annotations={**change.annotations, **_burst(pod, targets)})
    notes = tuple(
        f"{key.namespace} {title(items[0])}, container {name}: {why}"
        for name, why in change.unsaid.items()
    )
    inner = _inner(change, pod, template)
    if not inner:
        return None, notes
    for part in reversed(TEMPLATES[kind]):
        inner = {part: inner}
    metadata = {"name": key.name, "namespace": key.namespace}
    body = {"apiVersion": kind.api_version, "kind": key.kind, "metadata": metadata, **inner}
    comments = _comments(items, bursts=requests != targets)
    return OwnerPatch(key.namespace, key.kind, key.name, body, comments), notes


def kustomization(patches: Sequence[OwnerPatch], texts: Sequence[str]) -> dict[str, object]:
    """Return a component of kustomize that applies the patches, each given as its YAML."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [
            {
                "target": {"kind": patch.kind, "name": patch.name, "namespace": patch.namespace},
                "patch": text,
            }
            for patch, text in zip(patches, texts, strict=True)
        ],
    }


def _is_capped(pod: Pod) -> bool:
    """Return whether a library holds the pod to what it requests, so that it cannot use more."""
    return any(not _CAPPED.isdisjoint(item.gpu) for item in pod.containers)


def _burst(pod: Pod, targets: Mapping[str, int]) -> dict[str, str]:
    most = write_bytes(sum(targets.values()))
    return {} if pod.annotations.get(names.BURST) == most else {names.BURST: most}


def _template(raw: Object, parts: tuple[str, ...]) -> Object:
    found, path = raw, ""
    for part in parts:
        path = f"{path}.{part}".removeprefix(".")
        found = as_object(found.get(part), path)
    return found


def _inner(change: Wanted, pod: Pod, template: Object) -> dict[str, object]:
    """Return what a template should say otherwise, as its own structure has it."""
    inner: dict[str, object] = {}
    if change.annotations:
        inner["metadata"] = {"annotations": dict(change.annotations)}
    lists: dict[str, list[object]] = {}
    for container in pod.containers:
        if own := change.resources.get(container.name):
            where = "containers"
            if container.kind is not ContainerKind.REGULAR:
                where = "initContainers"
            resources = {"limits": dict(own), **_requests(template, where, container.name, own)}
            lists.setdefault(where, []).append({"name": container.name, "resources": resources})
    if lists:
        inner["spec"] = lists
    return inner


def _requests(
    template: Object, where: str, name: str, own: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """
    Return the requests that stand beside the limits: of extended resources both must be equal.
    """
    spec = as_object(template.get("spec"), "spec")
    listed = objects(spec.get(where), where)
    container = next(item for item in listed if item.get("name") == name)
    resources = as_object(container.get("resources"), "resources")
    requests = as_object(resources.get("requests"), "requests")
    same = {key: text for key, text in own.items() if key in requests}
    return {"requests": same} if same else {}


def _comments(items: Sequence[NeedSummary], *, bursts: bool) -> tuple[str, ...]:
    return tuple(
        f"{item.key.container} on {item.key.card}: "
        f"{limit_mebibytes(item.target_bytes, unknown='no target')}, confidence {item.confidence}, "
        f"{item.reasons.target}{_request_comment(item) if bursts else ''}"
        for item in items
    )


def _request_comment(item: NeedSummary) -> str:
    if item.request_bytes is None:
        return ""
    return f"; requests {limit_mebibytes(item.request_bytes)}: {item.reasons.request}"


class Wanted(NamedTuple):
    """
    What a template should say: resources by container, annotations of the pod, and for which
    containers no way is known to say it, with the reason.
    """

    resources: Mapping[str, Mapping[str, str]]
    annotations: Mapping[str, str]
    unsaid: Mapping[str, str]


class NodeWords(NamedTuple):
    """
    What numbers on pods mean on the nodes that they run on; the card's memory is None where nobody
    tells it.
    """

    units: Units
    card_bytes: int | None


def wanted(pod: Pod, targets: Mapping[str, int], nodes: NodeWords) -> Wanted:
    """
    Say the targets of a pod's containers in its own dialect. What already says so is left out.
    """
    resources: dict[str, dict[str, str]] = {}
    unsaid: dict[str, str] = {}
    undeclared = []
    asking = [item for item in pod.containers if item.gpu] or pod.containers
    for container in asking:
        if container.name in targets:
            own, why_not = _resources(container, targets[container.name], nodes)
            if why_not:
                unsaid[container.name] = why_not
            elif own:
                resources[container.name] = own
            else:
                undeclared.append(container.name)
    told = {item.name: targets[item.name] for item in asking if item.name in targets}
    annotations = _tightened(pod, told, complete=len(told) == len(asking))
    if undeclared:
        annotations |= _kai(pod, sum(told.values()), nodes) or _granted(pod, told, asking, unsaid)
    return Wanted(
        {name: changed for name, own in resources.items() if (changed := _changed(pod, name, own))},
        {key: text for key, text in annotations.items() if pod.annotations.get(key) != text},
        unsaid,
    )


def _resources(container: Container, target: int, nodes: NodeWords) -> tuple[dict[str, str], str]:
    """
    Return the resources that hold a target, none where the container asks for no amount, and why
    they cannot be told.
    """
    for resource in container.gpu:
        if resource.startswith(names.NVIDIA_MIG_PREFIX):
            return {}, "its MIG instance is its card: choose a profile that holds the target"
        if resource in _UNIT_BYTES:
            unit = _UNIT_BYTES[resource](nodes.units)
            if unit is None:
                return {}, f"the unit of {resource} is not certain on its nodes"
            return {resource: str(-(-target // unit))}, ""
        if resource in _PERCENTAGES:
            if nodes.card_bytes is None:
                return {}, f"the memory of its card is not known, of which {resource} is a part"
            return {resource: str(_hundredths(target, nodes.card_bytes))}, ""
    if container.claims and not container.gpu:
        return {}, "its resource claim is its amount: write the target into the claim's capacity"
    return {}, ""


def _kai(pod: Pod, target: int, nodes: NodeWords) -> dict[str, str]:
    """
    Return KAI's own annotation where the pod speaks it, nothing where its card's memory is unknown.
    """
    if names.KAI_MEMORY in pod.annotations:
        unit = _UNIT_BYTES[names.KAI_MEMORY](nodes.units) or 1
        return {names.KAI_MEMORY: str(-(-target // unit))}
    if names.KAI_FRACTION in pod.annotations and nodes.card_bytes is not None:
        share = min(_hundredths(target, nodes.card_bytes), _HUNDREDTHS - 1)
        return {names.KAI_FRACTION: f"0.{share:02}"}
    return {}


def _tightened(pod: Pod, targets: Mapping[str, int], *, complete: bool) -> dict[str, str]:
    """
    Return what annotations of ours that are there should say: beside an amount the smaller counts.
    """
    own = {f"{names.MEMORY_OF_CONTAINER}{name}": target for name, target in targets.items()}
    if complete:
        own[names.MEMORY] = sum(targets.values())
    return {key: write_bytes(target) for key, target in own.items() if key in pod.annotations}


def _granted(
    pod: Pod, targets: Mapping[str, int], asking: Sequence[Container], unsaid: dict[str, str]
) -> dict[str, str]:
    """
    Return annotations that grant amounts where nothing says one: to all containers, since those
    without would make the others unreadable.
    """
    keys = {name: f"{names.MEMORY_OF_CONTAINER}{name}" for name in targets}
    if names.MEMORY in pod.annotations or any(key in pod.annotations for key in keys.values()):
        return {}
    missing = [item.name for item in asking if item.name not in targets]
    if len(asking) > 1 and missing:
        unsaid.update(dict.fromkeys(targets, f"container {missing[0]} has no target beside it"))
        return {}
    if len(asking) == 1:
        return {names.MEMORY: write_bytes(sum(targets.values()))}
    return {keys[name]: write_bytes(target) for name, target in targets.items()}


def _changed(pod: Pod, name: str, own: Mapping[str, str]) -> dict[str, str]:
    said = next(item.gpu for item in pod.containers if item.name == name)
    return {key: text for key, text in own.items() if str(said[key]) != text}


def _hundredths(target: int, card_bytes: int) -> int:
    return min(-(-target * _HUNDREDTHS // card_bytes), _HUNDREDTHS)
