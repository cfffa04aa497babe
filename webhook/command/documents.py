"""
The pods inside of manifests: alone, in templates of controllers, in lists, in many documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from gpufence.errors import InvalidError, Problem
from gpufence.shape import Object, as_object

if TYPE_CHECKING:
    from collections.abc import Iterator

Manifest = dict[str, Any]

_TEMPLATES = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        (
            *("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"),
            *("Job", "Rollout"),
        ),
        ("spec", "template"),
    ),
}


@dataclass(frozen=True, slots=True)
class Document:
    """
    One object, and where in which file it was found.
    """

    where: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class PodManifest:
    """
    One pod as it would be created; `path` is where it stands in the object that holds it.
    """

    where: str
    kind: str
    name: str
    namespace: str
    pod: Manifest
    owner: Manifest
    path: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.kind.lower()}/{self.name or '(generated name)'}"


def read_documents(text: str, source: str) -> list[Document]:
    """
    Read every object of a YAML or JSON text, those in lists included.
    """
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "somewhere"
        problem = getattr(error, "problem", None) or "cannot be read"
        raise InvalidError(
            Problem(source, where, f"is not YAML: {problem}", "mend the manifest")
        ) from error
    found = [
        item
        for number, document in enumerate(documents, start=1)
        if document is not None
        for item in _flat(document, f"{source}, document {number}")
    ]
    if not found:
        raise InvalidError(Problem(source, "", "holds no object", "give it a manifest"))
    return found


def pods_in(documents: list[Document], source: str) -> list[PodManifest]:
    """
    Return every pod that the objects would lead to; objects without pods lead to none.
    """
    found = [pod for document in documents for pod in _pods(document)]
    if not found:
        kinds = ", ".join(sorted({str(item.manifest.get("kind", "")) for item in documents}))
        known = ", ".join(_TEMPLATES)
        remedy = f"give it one of {known}, or a List of them"
        raise InvalidError(Problem(source, kinds, "holds no pod", remedy))
    return found


def with_pod(found: PodManifest, pod: Manifest) -> None:
    """
    Put a rewritten pod back to where it was found.
    """
    if not found.path:
        found.owner.clear()
        found.owner.update(pod)
        return
    target = found.owner
    for key in found.path[:-1]:
        target = target[key]
    template = target[found.path[-1]]
    template["metadata"], template["spec"] = pod["metadata"], pod["spec"]


def _flat(document: object, source: str) -> Iterator[Document]:
    if not isinstance(document, dict) or not document.get("kind"):
        raise InvalidError(
            Problem(source, repr(document), "is no Kubernetes object", "give it a kind")
        )
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for position, item in enumerate(document["items"]):
            yield from _flat(item, f"{source}, items[{position}]")
    else:
        yield Document(source, document)


def _pods(document: Document) -> Iterator[PodManifest]:
    manifest = document.manifest
    kind = str(manifest["kind"])
    path = _TEMPLATES.get(kind)
    if path is None:
        return
    metadata = as_object(manifest.get("metadata"), f"{document.where}: {kind} metadata")
    template: Any = manifest
    for key in path:
        template = template.get(key) if isinstance(template, dict) else None
    if not isinstance(template, dict):
        raise InvalidError(
            Problem(f"{document.where}: {kind}", "", f"has no {'.'.join(path)}", "add it")
        )
    pod = template if not path else _from_template(template, metadata)
    yield PodManifest(
        where=document.where,
        kind=kind,
        name=str(metadata.get("name") or metadata.get("generateName") or ""),
        namespace=str(metadata.get("namespace") or "default"),
        pod=pod,
        owner=manifest,
        path=path,
    )


def _from_template(template: Manifest, owner: Object) -> Manifest:
    """
    Make the pod a controller would make, in the shape the API server hands to a webhook.
    """
    metadata = {**(template.get("metadata") or {})}
    metadata.setdefault("generateName", f"{owner.get('name', 'pod')}-")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }
