"""
The pods inside of manifests: alone, in lists, in many documents, and in whatever holds a pod's
template, by its shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from gpufence.errors import InvalidError, Problem
from gpufence.shape import as_object
from webhook.command.lone import names_gpu
from webhook.command.templates import Form, Key, Manifest, PodTemplate, template_at, templates_in

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMPLATES: dict[str, tuple[str, ...]] = {
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
"""Where Kubernetes' own controllers must have one; a Volcano Job has its kind from them, too."""

_NO_PODS = re.compile(r"(?:karpenter|kueue|autoscaling|scheduling|resource|node|policy)\.")
"""Groups whose kinds name GPUs and have no pods: of queues, nodes and claims."""
_VOLCANO = "batch.volcano.sh/"


@dataclass(frozen=True, slots=True)
class Document:
    """One object, and where in which file it was found."""

    where: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class PodManifest:
    """One pod as it would be created, and the template it comes from."""

    where: str
    kind: str
    name: str
    namespace: str
    template: PodTemplate
    several: bool = False
    remark: str = ""

    @property
    def pod(self) -> Manifest:
        return self.template.pod

    @property
    def path(self) -> str:
        """Where the template stands in its object; empty for a pod itself."""
        return _shown(self.template.path)

    @property
    def title(self) -> str:
        title = f"{self.kind.lower()}/{self.name or '(generated name)'}"
        return f"{title} {self.path}" if self.several else title


def read_documents(text: str, source: str, *, lenient: bool = False) -> list[Document]:
    """
    Read every object of a YAML or JSON text, those in lists included; `lenient` passes over what is
    no object of Kubernetes, as there is in folders.
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
        if document is not None and not (lenient and not _is_object(document))
        for item in _flat(document, f"{source}, document {number}")
    ]
    if not found and not lenient:
        raise InvalidError(Problem(source, "", "holds no object", "give it a manifest"))
    return found


def pods_in(documents: list[Document], source: str) -> list[PodManifest]:
    """Return every pod that the objects would lead to; objects without pods lead to none."""
    found = [pod for document in documents for pod in _pods(document)]
    if not found:
        kinds = ", ".join(sorted({str(item.manifest.get("kind", "")) for item in documents}))
        remedy = "give it a Pod, or anything that holds the template of one"
        custom = [item for item in documents if _is_custom(item)]
        if custom:
            remedy += f"; of what a controller makes pods of: {_ask(custom[0])}"
        raise InvalidError(Problem(source, kinds, "holds no pod", remedy))
    return found


def unseen_in(documents: list[Document]) -> list[Document]:
    """Return the objects that name GPUs and show nothing of a pod."""
    return [
        document
        for document in documents
        if _is_custom(document) and names_gpu(document.manifest) and not any(_pods(document))
    ]


def unseen_text(document: Document) -> str:
    """Return what to say of an object whose pods cannot be seen."""
    shown = f"{_titled(document)} names GPUs and shows no container"
    return f"{shown}; if a controller makes pods of it: {_ask(document)}"


def _is_custom(document: Document) -> bool:
    """Return whether an object is of a kind that a controller may make pods of."""
    group = str(document.manifest.get("apiVersion", "")).partition("/")[0]
    return "." in group and not _NO_PODS.match(group)


def _titled(document: Document) -> str:
    manifest = document.manifest
    name = as_object(manifest.get("metadata"), "metadata").get("name")
    return f"{str(manifest['kind']).lower()}/{name or '(generated name)'}"


def _ask(document: Document) -> str:
    """Return the command that shows what becomes of pods that are there."""
    metadata = as_object(document.manifest.get("metadata"), "metadata")
    place = metadata.get("namespace") or "default"
    ask = f"kubectl get pods -n {place} -l <a label of theirs> -o yaml"
    return f"{ask} | gpufence-webhook rewrite -f -"


def _is_object(document: object) -> bool:
    return isinstance(document, dict) and bool(document.get("kind"))


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
    metadata = as_object(manifest.get("metadata"), f"{document.where}: {kind} metadata")
    found = list(_templates(document, kind))
    for template in found:
        yield PodManifest(
            where=document.where,
            kind=kind,
            name=str(metadata.get("name") or metadata.get("generateName") or ""),
            namespace=str(metadata.get("namespace") or "default"),
            template=template,
            several=len(found) > 1 or (kind != "Pod" and kind not in _TEMPLATES),
            remark=_remark(document, template),
        )


def _remark(document: Document, template: PodTemplate) -> str:
    """Return what is to be known of a pod of which only a container stands in its object."""
    if template.form is not Form.CONTAINER:
        return ""
    shown = f"{_shown(template.path)} is a container, and its pod is made by a controller"
    return f"{shown} that may add to it: -o yaml leaves it; once it is there, {_ask(document)}"


def _templates(document: Document, kind: str) -> Iterator[PodTemplate]:
    manifest = document.manifest
    path = _TEMPLATES.get(kind)
    if path is None or str(manifest.get("apiVersion", "")).startswith(_VOLCANO):
        yield from templates_in(manifest)
        return
    template = template_at(manifest, path)
    if template is None:
        problem = Problem(f"{document.where}: {kind}", "", f"has no {'.'.join(path)}", "add it")
        raise InvalidError(problem)
    yield template


def _shown(path: tuple[Key, ...]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")
