"""
PURE. Targets as patches of the objects that make the pods, for Git: nothing here changes a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.pods import ContainerKind, read_pod
from gpufence.shape import as_object, objects
from gpufence.text import limit_mebibytes
from kube.kinds import ApiKind
from kubectl_gpufence.recommend.amounts import wanted
from kubectl_gpufence.recommend.lines import title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.need import NeedSummary
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from kubectl_gpufence.recommend.amounts import NodeWords, Wanted


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


def patch_of(
    items: Sequence[NeedSummary], raw: Object, nodes: NodeWords
) -> tuple[OwnerPatch | None, tuple[str, ...]]:
    """
    Make the patch of one owner, as the API server has it, and say of which containers no amount can
    be written. None where everything is said already.

    Raises:
        InvalidError: its template cannot be read.
    """
    key = items[0].key
    kind = OWNER_KINDS[key.kind]
    template = _template(raw, TEMPLATES[kind])
    pod = read_pod(template)
    change = wanted(pod, targets_of(items), nodes)
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
    return OwnerPatch(key.namespace, key.kind, key.name, body, _comments(items)), notes


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


def _comments(items: Sequence[NeedSummary]) -> tuple[str, ...]:
    return tuple(
        f"{item.key.container} on {item.key.card}: "
        f"{limit_mebibytes(item.target_bytes, unknown='no target')}, confidence {item.confidence}, "
        f"{item.reasons.target}"
        for item in items
    )
