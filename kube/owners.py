"""
PURE. Who owns pods, as the API shows them: who controls an object, and what it wants.

An owner is the topmost object above a pod. What it says of replicas is changed by its scale
subresource alone; Kubeflow's Notebooks are stopped by their annotation, and what Kueue admits by
its Workload's `spec.active`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube.kinds import ApiKind
    from kube.replies import JsonObject

NOTEBOOK: Final = ("kubeflow.org", "Notebook")
WORKLOAD: Final = ("kueue.x-k8s.io", "Workload")
_REFERENCE: Final = ("apiVersion", "kind", "name", "uid")
_MOST_CHARACTERS: Final = 320
"""More than a group with its version, the longest of them."""


class Reference(NamedTuple):
    """Who controls an object, as that one says itself."""

    api_version: str
    kind: str
    name: str
    uid: str


class ApiOwner(NamedTuple):
    """
    An object as it was read: `version` is what it must still be when it is acted on. Of its
    annotations those are kept that are ours, and Kubeflow's.

    `replicas` is what it wants; None where it has no such number, as what is stopped and started as
    a whole, and those whose kind has its number elsewhere.
    """

    kind: ApiKind
    namespace: str
    name: str
    uid: str
    version: str
    annotations: Mapping[str, str]
    controller: Reference | None = None
    replicas: int | None = None
    active: bool = True

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace, self.name)

    @property
    def shown(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}"

    @property
    def stoppable(self) -> bool:
        """Return whether it is stopped and started as a whole."""
        return is_notebook(self.kind) or is_workload(self.kind)

    @property
    def scalable(self) -> bool:
        """Return whether its replicas can be read and changed."""
        return self.kind.scalable and not self.stoppable and self.replicas is not None


def is_notebook(kind: ApiKind) -> bool:
    return (kind.group, kind.kind) == NOTEBOOK


def is_workload(kind: ApiKind) -> bool:
    return (kind.group, kind.kind) == WORKLOAD


def owner_of(kind: ApiKind, item: JsonObject) -> ApiOwner:
    """Read an object, whatever its kind, keeping little."""
    metadata, spec = part_of(item, "metadata"), part_of(item, "spec")
    annotations = part_of(metadata, "annotations")
    return ApiOwner(
        kind=kind,
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        annotations={
            key: text
            for key, text in annotations.items()
            if isinstance(text, str) and (key.startswith(names.PREFIX) or key == names.STOPPED)
        },
        controller=controller_of(metadata),
        replicas=number_of(spec.get("replicas")),
        active=_is_active(kind, annotations, spec),
    )


def controller_of(metadata: JsonObject) -> Reference | None:
    """
    Return who controls an object, by its metadata; the API server takes texts of any length there.
    """
    listed = metadata.get("ownerReferences")
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict) and item.get("controller") is True:
            return Reference(*(str(item.get(key, ""))[:_MOST_CHARACTERS] for key in _REFERENCE))
    return None


def _is_active(kind: ApiKind, annotations: JsonObject, spec: JsonObject) -> bool:
    if is_notebook(kind):
        return names.STOPPED not in annotations
    return not is_workload(kind) or spec.get("active") is not False


def number_of(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
