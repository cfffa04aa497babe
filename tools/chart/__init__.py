"""
The Helm chart in deploy/chart: its templates, values and their schema, from deploy/base and
deploy/components as kustomize renders them. The rest of it is written by hand.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpufence.names import HELP_URL, SYSTEM_NAMESPACE
from tools.chart.merge import ABSENT, Choice, Flags, Named, by_name, merged
from tools.chart.template import Code, Printer, Unless
from tools.chart.usual import with_usual
from tools.chart.values import SETTINGS, TEST_OF, schema_page, value_of, values_page
from tools.manifests import (
    BASE,
    COMPONENTS,
    DEPLOY,
    REGISTRY,
    all_of,
    components,
    objects,
    own_overlay,
)
from tools.runbooks import WEBSITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CHART: Final = DEPLOY / "chart"
WRITTEN: Final = CHART / "templates" / "written"
Key = tuple[str, str, str]
Rendered = dict[Key, Any]
_IMAGE: Final = re.compile(rf"image: {re.escape(REGISTRY)}/(\w+):\S+")
# What component driver-limits sets is one of several words with Helm.
_WORD: Final = "value: labelled"
_SAID: Final = 'value: {{ include "gpufence.driverLimits" . | quote }}'
_HOME: Final = '(include "gpufence.namespace" $)'
_READING: Final = re.compile(
    r"^( *)(- namespaceSelector:\n(?:.*\n)*? *values:)(?:\n *- [a-z-]+)+$", re.MULTILINE
)
_READ: Final = (
    r"\1\2 {{ toJson $.Values.network.namespaces }}"
    r"\n{{- range $.Values.network.apiServers }}\n\1- ipBlock: {cidr: {{ . | quote }}}\n{{- end }}"
)
_DASHBOARDS: Final = "dashboards"
_DAILY: Final = ("CronJob", SYSTEM_NAMESPACE, "gpufence-certs")
_INSTALL: Final = "gpufence-certs-install"
_PLAIN: Final = "gitops"
_HOOKS: Final = "post-install,post-upgrade,post-rollback"
_PULL_SECRETS: Final = Code(
    (
        "{{- with .Values.imagePullSecrets }}",
        "imagePullSecrets: {{ toJson . }}",
        "{{- end }}",
    )
)
_KEPT: Final = Code(
    (
        "{{- if .Values.crds.keep }}",
        "helm.sh/resource-policy: keep",
        "{{- end }}",
    )
)
_LINKING: Final = ("agent", "controller", "webhook")
_HELP_URL: Final = Code(
    (
        "{{- with .Values.helpUrl }}",
        f"- name: {HELP_URL}",
        "  value: {{ . | quote }}",
        "{{- end }}",
    )
)
_CONDITIONS: Final = {name: TEST_OF.get(name, f".Values.{value_of(name)}") for name in components()}


def pages(kustomize: Callable[[Path], str]) -> dict[Path, str]:
    """Return every page that is written, by its path; `kustomize` renders a folder."""
    rendered = _rendered(kustomize)
    base = rendered[frozenset()]
    # Each object as whoever brings it has it, before others change it.
    brought = {key: item for found in reversed(rendered.values()) for key, item in found.items()}
    origins = dict(_origins())
    texts: dict[str, list[str]] = {}
    for key in sorted(brought):
        variants = [(flags, found.get(key, ABSENT)) for flags, found in rendered.items() if flags]
        lines = _printed(key, merged(base.get(key, ABSENT), variants))
        texts.setdefault(origins[key], []).extend(lines)
    written = {WRITTEN / f"{name}.yaml": _page(name, lines) for name, lines in texts.items()}
    return {
        **written,
        CHART / "values.yaml": values_page(),
        CHART / "values.schema.json": schema_page(brought.values()),
    }


def _page(name: str, lines: list[str]) -> str:
    folder = f"base/{name}" if (BASE / name).is_dir() else f"components/{name}"
    return "\n".join([f"# Written by `make chart` from deploy/{folder}.", *lines, ""])


def _rendered(kustomize: Callable[[Path], str]) -> dict[Flags, Rendered]:
    """Render the base, each component, and each two that have to do with the same object."""
    with tempfile.TemporaryDirectory(prefix="gpufence-chart-") as folder:
        found = {frozenset[str](): _objects(kustomize(BASE))}
        base = found[frozenset()]
        for name in components():
            found[frozenset({name})] = _combined(kustomize, Path(folder), [name])
        touched = {
            name: {key for key in items.keys() | base.keys() if items.get(key) != base.get(key)}
            for (name, items) in (
                (next(iter(flags)), items) for flags, items in found.items() if flags
            )
        }
        for one, other in combinations(touched, 2):
            if touched[one] & touched[other]:
                found[frozenset({one, other})] = _combined(kustomize, Path(folder), [one, other])
        return found


def _combined(kustomize: Callable[[Path], str], folder: Path, names: Iterable[str]) -> Rendered:
    """Render the base with these components."""
    here = Path(tempfile.mkdtemp(dir=folder))
    return _objects(kustomize(own_overlay(here, names)))


def _objects(text: str) -> Rendered:
    return {_key(item): by_name(item) for item in all_of(text)}


def _key(item: dict[str, Any]) -> Key:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]


def _origins() -> Iterator[tuple[Key, str]]:
    """Name the folder that each object is written in; dashboards are made by kustomize."""
    folders = [path for path in BASE.iterdir() if path.is_dir()]
    for folder in (*folders, *(COMPONENTS / name for name in components())):
        for item in objects(folder):
            yield _key(item), folder.name
    for made in yaml.safe_load((DEPLOY / _DASHBOARDS / "kustomization.yaml").read_text("utf-8"))[
        "configMapGenerator"
    ]:
        yield ("ConfigMap", SYSTEM_NAMESPACE, made["name"]), "grafana-dashboards"


def _printed(key: Key, node: Any) -> list[str]:
    kind, _, name = key
    condition = f"ne .Release.Namespace {_HOME}" if kind == "Namespace" else ""
    node = _with_code(_installing(node) if name == _INSTALL else node)
    printer = Printer(_CONDITIONS)
    lines = printer.document(node, condition)
    if key == _DAILY:
        lines += printer.document(_first(node), condition)
    lines = [
        _IMAGE.sub(r'image: {{ include "gpufence.image" (list . "\1") }}', line) for line in lines
    ]
    lines = [line.replace(_WORD, _SAID) for line in lines]
    lines = [line.replace(SYSTEM_NAMESPACE, f"{{{{ {_HOME[1:-1]} }}}}") for line in lines]
    lines = _with_network(lines) if kind == "NetworkPolicy" else lines
    return [line.replace(f"{WEBSITE}/", "{{ .Values.website }}/") for line in lines]


def _with_network(lines: list[str]) -> list[str]:
    """Let values say which namespaces and addresses may read the pages of status ports."""
    return _READING.sub(_READ, "\n".join(lines)).split("\n")


def _first(node: Any) -> Any:
    """
    Make of the daily run a Job of each revision, which issues what the webhook serves: it would
    not be ready without, and `helm install --wait` runs no hook before it is.
    """
    if isinstance(node, Choice):
        others = tuple((f, ABSENT if _PLAIN in f else _first(v)) for f, v in node.others)
        return Choice(_first(node.default), others)
    if node is ABSENT:
        return node
    spec = node["spec"]["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"].values()
    first = {**container, "command": ["gpufence-certs", "issue"]}
    pod = {**pod, "containers": Named({first["name"]: first})}
    job = {**spec, "template": {**spec["template"], "spec": pod}}
    metadata = {
        # Argo CD knows one revision, and runs it again with each synchronisation.
        "annotations": {
            "argocd.argoproj.io/hook": "Sync",
            "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation,HookSucceeded",
        },
        "labels": node["metadata"]["labels"],
        "name": _named_by_content("gpufence-certs-issue-{{ .Release.Revision }}", job),
        "namespace": node["metadata"]["namespace"],
    }
    return {"apiVersion": node["apiVersion"], "kind": "Job", "metadata": metadata, "spec": job}


def _named_by_content(name: str, job: dict[str, Any]) -> Code:
    """Name a Job by what it is made of: it cannot be changed, only be another one."""
    made = hashlib.sha256(repr(job).encode()).hexdigest()[:10]
    return Code((f'name: {name}-{{{{ include "gpufence.content" (list . "{made}") }}}}',))


def _installing(node: Any) -> Any:
    """
    Let Helm run the install's Job with its account, and remove both when it is done; or let both
    stay, as `gitops` asks.
    """
    if isinstance(node, Choice):
        others = tuple((f, (_plain if _PLAIN in f else _installing)(v)) for f, v in node.others)
        return Choice(_installing(node.default), others)
    if node is ABSENT:
        return node
    job = node["kind"] == "Job"
    # A Job that failed stays, with its log, until the next one or the next daily run.
    gone = ["before-hook-creation", "hook-succeeded", *([] if job else ["hook-failed"])]
    notes = {
        "helm.sh/hook": _HOOKS,
        "helm.sh/hook-delete-policy": ",".join(gone),
        "helm.sh/hook-weight": "0" if job else "-1",
    }
    if job:
        metadata = {"annotations": notes, **node["metadata"]}
        return {**node, "metadata": metadata, "spec": _without_removal(node["spec"])}
    lines = [f"  {key}: {value!r}" for key, value in notes.items()]
    hook = Code(("{{- if not .Values.gitops }}", "annotations:", *lines, "{{- end }}"))
    return {**node, "metadata": {"annotations": hook, **node["metadata"]}}


def _plain(job: Any) -> Any:
    if job is ABSENT:
        return job
    name = _named_by_content(_INSTALL, job["spec"])
    return {**job, "metadata": {**job["metadata"], "name": name}}


def _without_removal(spec: dict[str, Any]) -> dict[str, Any]:
    """Leave the removal to Helm, as soon as it knows how the Job has ended."""
    pod = spec["template"]["spec"]
    (container,) = pod["containers"].values()
    own = {key: value for key, value in container.items() if key != "args"}
    pod = {**pod, "containers": Named({own["name"]: own})}
    lasting = {key: value for key, value in spec.items() if key != "ttlSecondsAfterFinished"}
    return {**lasting, "template": {**spec["template"], "spec": pod}}


def _with_code(node: Any) -> Any:
    """Put in what only Helm knows: pull secrets, settings, and the dashboards, which are files."""
    if isinstance(node, Choice):
        others = tuple((flags, _with_code(value)) for flags, value in node.others)
        return Choice(_with_code(node.default), others)
    if not isinstance(node, dict):
        return node
    node = with_usual(node) if {"apiVersion", "metadata"} <= node.keys() else node
    entries = type(node)((key, _with_code(value)) for key, value in node.items())
    if isinstance(node.get("containers"), Named):
        entries["imagePullSecrets"] = _PULL_SECRETS
        for name, container in entries["containers"].items():
            if name in SETTINGS:
                container["env"] = _with_settings(name, container["env"])
    if node.get("kind") == "CustomResourceDefinition":
        annotations = {**node["metadata"]["annotations"], "kept": _KEPT}
        entries["metadata"] = {**node["metadata"], "annotations": annotations}
    if node.get("kind") == "ConfigMap":
        for file in (DEPLOY / _DASHBOARDS).glob("*.json"):
            if file.name in node.get("data", ()):
                told = f'{file.name}: {{{{ .Files.Get "{_DASHBOARDS}/{file.name}" | toJson }}}}'
                entries["data"][file.name] = Code((told,))
    return entries


def _with_settings(program: str, variables: Named) -> Named:
    """Let people set variables, and set otherwise what components set."""
    settings = f".Values.settings.{program}"
    told = Named(
        (name, Unless(f'hasKey {settings} "{name}"', item) if isinstance(item, Choice) else item)
        for name, item in variables.items()
    )
    if program in _LINKING:
        told["help"] = _HELP_URL
    told["settings"] = Code(
        (
            f"{{{{- range $name, $value := {settings} }}}}",
            "- name: {{ $name }}",
            '  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}',
            "{{- end }}",
        )
    )
    return told
