"""
Pod templates by their shape: whatever has a list of containers, in any object of any kind.

Some controllers add to a template what a container is recognised by. What KubeRay, mpi-operator and
KServe are known to add is added here, and left out again where a template is put back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gpufence.errors import InvalidError, Problem
from webhook.command.lone import beside, lone_container

if TYPE_CHECKING:
    from collections.abc import Iterator

Manifest = dict[str, Any]
Key = str | int

_DEEPEST = 32
_RAY_KINDS = frozenset(("RayCluster", "RayJob", "RayService"))
_RAY_START = "ulimit -n 65536; ray start --block"
_LLM_KINDS = frozenset(("LLMInferenceService", "LLMInferenceServiceConfig"))
_LLM_CONTAINER = "main"
_LLM_START = 'eval "exec vllm serve /mnt/models ${VLLM_ADDITIONAL_ARGS} $@"'
_LLM_ADDED = {
    "image": "llm-d/llm-d-cuda",
    "command": ["/bin/bash", "-c", _LLM_START, "--"],
}
"""What KServe adds where its users write nothing."""
_FORMATS = {
    "huggingface": "kserve/huggingfaceserver",
    "triton": "nvcr.io/nvidia/tritonserver",
    "tensorflow": "tensorflow/serving",
    "pytorch": "pytorch/torchserve-kfs",
}
"""What KServe's own runtimes run a model's format in."""


class Form(StrEnum):
    """How a template is written down."""

    POD = "pod"
    TEMPLATE = "template"  # metadata and spec
    SPEC = "spec"  # a pod's spec without metadata
    MODEL = "model"  # one container, of KServe's
    CONTAINER = "container"  # one container, in what an operator makes a pod of


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """
    A template, where it stands in its owner, and the pod that its controller would make of it.

    `added` are fields that the controller would add to the container in place `at`.
    """

    owner: Manifest
    path: tuple[Key, ...]
    form: Form
    pod: Manifest
    added: Manifest = field(default_factory=dict)
    at: int = 0

    def put_back(self, pod: Manifest) -> None:
        """Put a rewritten pod where its template was found, which none can be of an operator's."""
        if self.form is Form.CONTAINER:
            return
        spec = pod["spec"]
        for name in self.added:
            spec["containers"][self.at].pop(name, None)
        container = spec["containers"][self.at] if self.form is Form.MODEL else {}
        if self.form is Form.POD:
            self.owner.clear()
            self.owner.update(pod)
            return
        target: Any = self.owner
        for key in self.path:
            target = target[key]
        if self.form is Form.TEMPLATE:
            target["metadata"], target["spec"] = pod["metadata"], spec
            return
        annotations = pod["metadata"].get("annotations")
        place = target if self.form is Form.SPEC else self._component()
        if annotations:
            place["annotations"] = annotations
        if self.form is Form.SPEC:
            target.update(spec)
            return
        target.update(container)
        place.update({key: spec[key] for key in spec if key != "containers"})

    def _component(self) -> Manifest:
        target: Any = self.owner
        for key in self.path[:-1]:
            target = target[key]
        found: Manifest = target
        return found


def template_at(owner: Manifest, path: tuple[str, ...]) -> PodTemplate | None:
    """Return the template at a path where one must stand, whatever its shape."""
    template: Any = owner
    for key in path:
        template = template.get(key) if isinstance(template, dict) else None
    if not isinstance(template, dict):
        return None
    pod = _pod(owner, template.get("metadata") or {}, template.get("spec") or {})
    return PodTemplate(owner, path, Form.TEMPLATE, pod)


def templates_in(manifest: Manifest) -> Iterator[PodTemplate]:
    """
    Find every pod template of an object, from the outside in.

    Raises:
        InvalidError: the object is nested without end.

    """
    if str(manifest.get("kind")) == "Pod":
        pod = manifest if manifest.get("metadata") else {**manifest, "metadata": {}}
        yield PodTemplate(manifest, (), Form.POD, pod)
        return
    waiting: list[tuple[tuple[Key, ...], Any]] = [((), manifest)]
    while waiting:
        path, item = waiting.pop()
        if len(path) > _DEEPEST:
            where = ".".join(map(str, path[:3]))
            raise InvalidError(Problem(where, "", "is nested too deeply", "write it flatter"))
        if isinstance(item, list):
            waiting += [((*path, at), each) for at, each in reversed(list(enumerate(item)))]
        elif isinstance(item, dict):
            template = _template(manifest, path, item)
            if template is not None:
                yield template
                if template.form in _WHOLE:
                    continue
            taken = template.path[len(path) :][:1] if template is not None else ()
            inner = [
                ((*path, key), each)
                for key, each in item.items()
                if key not in taken
                and (key not in _INNER or (key in _NAMED and isinstance(each, dict)))
            ]
            waiting += reversed(inner)


def _template(owner: Manifest, path: tuple[Key, ...], item: Manifest) -> PodTemplate | None:
    """Return the template that an object is, if it is one."""
    spec = item.get("spec")
    if path and isinstance(spec, dict) and _has_containers(spec):
        return _with_added(owner, path, Form.TEMPLATE, item.get("metadata"), spec)
    if path and _has_containers(item):
        metadata = {"annotations": _inherited(owner, item)}
        return _with_added(owner, path, Form.SPEC, metadata, item)
    for key, each in item.items():
        if path and path[-1] == "predictor" and _is_model(key, each):
            image = each.get("image") or _image_of(key, each)
            added = {"name": "kserve-container", "image": image}
            container = {**added, **each}
            pod = _pod(owner, {"annotations": _inherited(owner, item)}, {"containers": [container]})
            new = {name: value for name, value in added.items() if name not in each}
            return PodTemplate(owner, (*path, key), Form.MODEL, pod, new)
    return _alone(owner, path, item)


def _alone(owner: Manifest, path: tuple[Key, ...], item: Manifest) -> PodTemplate | None:
    """Return the pod around a container that stands alone, as far as it can be seen."""
    around = _around(owner, path)
    key = next((key for key in reversed(path) if isinstance(key, str)), "")
    container = lone_container(key, item, around)
    if container is None:
        return None
    place = around[0] if around else owner
    metadata = place.get("metadata") if place is not owner else None
    said = {**_inherited(owner, place), **_annotations(metadata)}
    pod = _pod(owner, {"annotations": said}, beside(place, container))
    return PodTemplate(owner, path, Form.CONTAINER, pod)


def _around(owner: Manifest, path: tuple[Key, ...]) -> list[Manifest]:
    """Return the objects that a place stands in, the nearest first."""
    item: Any = owner
    found = []
    for key in path:
        found.append(item)
        item = item[key]
    return [each for each in reversed(found) if isinstance(each, dict)]


def _has_containers(spec: Manifest) -> bool:
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        return False
    return all(
        isinstance(each, dict) and not {"name", "image"}.isdisjoint(each) for each in containers
    )


def _is_model(key: str, item: object) -> bool:
    return isinstance(item, dict) and (
        "modelFormat" in item or (key in _FORMATS and "resources" in item)
    )


def _image_of(key: str, model: Manifest) -> str:
    """Return what a model would run in: its runtime's name says as much as an image would."""
    if model.get("runtime"):
        return str(model["runtime"])
    named = model.get("modelFormat")
    name = str(named.get("name", "")) if isinstance(named, dict) else key
    return _FORMATS.get(name.lower(), name)


def _inherited(owner: Manifest, item: Manifest) -> Manifest:
    """Return the annotations that a pod without metadata of its own gets from around it."""
    return {**_annotations(owner.get("metadata")), **_annotations(item)}


def _annotations(item: object) -> Manifest:
    found = item.get("annotations") if isinstance(item, dict) else None
    return found if isinstance(found, dict) else {}


def _with_added(
    owner: Manifest, path: tuple[Key, ...], form: Form, metadata: object, spec: Manifest
) -> PodTemplate:
    kind = str(owner.get("kind"))
    at = _of_kserve(spec) if kind in _LLM_KINDS else 0
    first = spec["containers"][at]
    started = "command" in first or "args" in first
    added: Manifest = {}
    if kind in _RAY_KINDS and "submitterPodTemplate" not in path and not started:
        added = {"command": ["/bin/bash", "-c", "--"], "args": [_RAY_START]}
    elif kind == "MPIJob" and "Worker" in path and not started:
        added = {"command": ["/usr/sbin/sshd"], "args": ["-De"]}
    elif kind in _LLM_KINDS and first.get("name") == _LLM_CONTAINER and "scheduler" not in path:
        added = {key: value for key, value in _LLM_ADDED.items() if not first.get(key)}
    if not first.get("name"):
        added["name"] = "main"
    if added:
        containers = list(spec["containers"])
        containers[at] = {**first, **added}
        spec = {**spec, "containers": containers}
    said = dict(metadata) if isinstance(metadata, dict) else {}
    return PodTemplate(owner, path, form, _pod(owner, said, spec), added, at)


def _of_kserve(spec: Manifest) -> int:
    """Return the place of the container that KServe starts a model's server in."""
    called = [each.get("name") for each in spec["containers"]]
    return called.index(_LLM_CONTAINER) if _LLM_CONTAINER in called else 0


def _pod(owner: Manifest, metadata: Manifest, spec: Manifest) -> Manifest:
    """Make the pod a controller would make, in the shape the API server hands to a webhook."""
    named = owner.get("metadata")
    name = named.get("name", "pod") if isinstance(named, dict) else "pod"
    metadata = {key: value for key, value in metadata.items() if value}
    metadata.setdefault("generateName", f"{name}-")
    fields = {key: value for key, value in spec.items() if key not in _NOT_OF_PODS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": fields}


_NAMED = ("containers", "sidecars")  # by name in some charts' values
_WHOLE = (Form.TEMPLATE, Form.CONTAINER)
_INNER = frozenset(
    (
        *("metadata", "status", "containers", "initContainers", "sidecars", "volumes"),
        "ephemeralContainers",
    )
)
_NOT_OF_PODS = frozenset(
    (
        *("annotations", "labels", "supportedModelFormats", "minReplicas", "maxReplicas", "model"),
        *("protocolVersions", "multiModel", "workerSpec", "builtInAdapter", "grpcDataEndpoint"),
        *("canaryTrafficPercent", "containerConcurrency", "deploymentStrategy", "scaleTarget"),
        *("scaleMetric", "batcher", "logger", "timeout", "disabled", "storageHelper", "replicas"),
    )
)
"""What stands beside a pod's fields where those have no place of their own."""
