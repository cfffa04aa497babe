"""
The usual values of each program: what people know from other charts, in place of what the manifests
say. A value that is not set leaves the manifest's; one that is set and empty leaves the key out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tools.chart.merge import ABSENT, Choice, Named, Present
from tools.chart.template import Code, Given

if TYPE_CHECKING:
    from tools.chart.merge import Flags

_ALL: Final = ("webhook", "agent", "certs", "controller")
_SERVING: Final = ("webhook", "controller")
_MOUNTING: Final = ("webhook", "agent")
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_OURS: Final = ("app.kubernetes.io/name", "app.kubernetes.io/part-of")
_AMOUNTS: Final = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_NAMED: Final = {"type": "array", "items": {"type": "object", "required": ["name"]}}
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}


class Usual(NamedTuple):
    """One value of some programs: what it is about, and what Helm refuses."""

    programs: tuple[str, ...]
    text: str
    schema: dict[str, Any]


USUAL: Final[dict[str, Usual]] = {
    "replicas": Usual(_SERVING, "how many pods", {"type": "integer", "minimum": 1}),
    "resources": Usual(
        _ALL,
        "requests and limits of the container",
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS},
        },
    ),
    "nodeSelector": Usual(_ALL, "labels of the nodes that it may run on", _TEXTS),
    "tolerations": Usual(_ALL, "taints that it tolerates", _OBJECTS),
    "affinity": Usual(
        _ALL,
        "in place of the manifest's, which for the agent says which nodes have GPUs",
        {"type": "object"},
    ),
    "topologySpreadConstraints": Usual(_SERVING, "how pods are spread", _OBJECTS),
    "priorityClassName": Usual(_ALL, "the class by which room is made for it", {"type": "string"}),
    "runtimeClassName": Usual(
        ("agent",),
        "the class that brings NVIDIA's driver, nvidia unless a component needs none",
        {"type": "string"},
    ),
    "podLabels": Usual(
        _ALL,
        "further labels of pods",
        {**_TEXTS, "propertyNames": {"not": {"enum": [*_OURS]}}},
    ),
    "podAnnotations": Usual(_ALL, "further annotations of pods", _TEXTS),
    "serviceAccountAnnotations": Usual(_ALL, "annotations of the service account", _TEXTS),
    "extraEnv": Usual(_ALL, "further variables, as in a container; settings go below", _NAMED),
    "extraVolumes": Usual(_MOUNTING, "further volumes, as in a pod", _NAMED),
    "extraVolumeMounts": Usual(_MOUNTING, "where they are mounted, as in a container", _NAMED),
    "hostNetwork": Usual(
        ("webhook",),
        "on the nodes' network, where API servers reach no pods; takes a node more than replicas",
        {"type": "boolean"},
    ),
}
_SPEC: Final = (
    *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"),
    *("priorityClassName", "runtimeClassName"),
)


def usual_values() -> str:
    """Return the part of the page of values, one block for each program."""
    lines = []
    for program in _ALL:
        lines += [
            "",
            f"# Pods of the {program}; null: as deploy/ has it, empty: none.",
            f"{program}:",
        ]
        for name, usual in USUAL.items():
            if program in usual.programs:
                lines += [f"  # {usual.text[0].upper()}{usual.text[1:]}.", f"  {name}: null"]
    return "\n".join(lines) + "\n"


def usual_schema() -> dict[str, Any]:
    """Return the schema of each program's values."""
    return {
        program: {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: _or_null(usual) for name, usual in USUAL.items() if program in usual.programs
            },
        }
        for program in _ALL
    }


def _or_null(usual: Usual) -> dict[str, Any]:
    return {**usual.schema, "type": [usual.schema["type"], "null"], "description": usual.text}


def with_usual(node: dict[str, Any]) -> dict[str, Any]:
    """Put the values of its program into a workload, or into its account."""
    if node.get("kind") == "ServiceAccount":
        return _account(node)
    spec = node.get("spec")
    if not isinstance(spec, dict):
        return node
    if "jobTemplate" in spec:
        inner = with_usual({"spec": spec["jobTemplate"]["spec"]})
        return {**node, "spec": {**spec, "jobTemplate": {**spec["jobTemplate"], **inner}}}
    template = spec.get("template")
    if not isinstance(template, dict):
        return node
    (program,) = template["spec"]["containers"]
    if program not in _ALL:
        return node
    changed = {**spec, "template": _pod(program, template)}
    if program in USUAL["replicas"].programs:
        changed["replicas"] = Given(_value(program, "replicas"), spec["replicas"])
    return {**node, "spec": changed}


def _account(node: dict[str, Any]) -> dict[str, Any]:
    program = node["metadata"]["name"].removeprefix("gpufence-")
    if program not in _ALL or "annotations" in node["metadata"]:
        return node
    given = Given(_value(program, "serviceAccountAnnotations"), ABSENT)
    return {**node, "metadata": {**node["metadata"], "annotations": given}}


def _pod(program: str, template: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = template["metadata"], template["spec"]
    changed = {**spec, "containers": Named({program: _container(program, spec)})}
    for name in _SPEC:
        if program in USUAL[name].programs:
            changed[name] = Given(_value(program, name), spec.get(name, ABSENT))
    if program in USUAL["hostNetwork"].programs:
        changed["hostNetwork"] = Code(_on_host(program))
    if program in _MOUNTING:
        value = _value(program, "extraVolumes")
        changed["volumes"] = _extended(spec.get("volumes", ABSENT), Code(_items(value)), value)
    labels = {**metadata["labels"], "more": Code(_entries(_value(program, "podLabels")))}
    notes = _value(program, "podAnnotations")
    before = metadata.get("annotations", ABSENT)
    annotations = _extended(before, Code(_entries(notes)), notes, dict)
    return {"metadata": {**metadata, "annotations": annotations, "labels": labels}, "spec": changed}


def _container(program: str, spec: dict[str, Any]) -> dict[str, Any]:
    container = spec["containers"][program]
    env = Named({**container["env"], "extra": Code(_items(_value(program, "extraEnv")))})
    changed = {
        **container,
        "env": env,
        "imagePullPolicy": Given(".Values.image.pullPolicy", ABSENT),
        "resources": Given(_value(program, "resources"), container["resources"]),
    }
    if program in _MOUNTING:
        value = _value(program, "extraVolumeMounts")
        before = container.get("volumeMounts", ABSENT)
        changed["volumeMounts"] = _extended(before, Code(_items(value)), value)
    return changed


def _extended(node: Any, more: Code, value: str, kind: type[dict[str, Any]] = Named) -> Any:
    """Let a value add to what may be there for other reasons, or for none."""
    added, asked = {"more": more}, frozenset({value})
    if isinstance(node, Present):
        return Present((*node.reasons, asked), kind({**node.node, **added}))
    if isinstance(node, Choice):  # one component, all of whose items are its own
        ((flags, items),) = node.others
        return Present((flags, asked), kind({**_under(flags, items), **added}))
    if node is ABSENT:
        return Present((asked,), kind(added))
    return kind({**node, **added})


def _under(flags: Flags, items: dict[str, Any]) -> dict[str, Any]:
    return {name: Choice(ABSENT, ((flags, item),)) for name, item in items.items()}


def _value(program: str, name: str) -> str:
    return f".Values.{program}.{name}"


def _items(value: str) -> tuple[str, ...]:
    return f"{{{{- range {value} }}}}", "- {{ toJson . }}", "{{- end }}"


def _entries(value: str) -> tuple[str, ...]:
    start = f"{{{{- range $name, $text := {value} }}}}"
    return start, "{{ $name }}: {{ $text | quote }}", "{{- end }}"


def _on_host(program: str) -> tuple[str, ...]:
    begin = f"{{{{- if {_value(program, 'hostNetwork')} }}}}"
    return begin, "hostNetwork: true", "dnsPolicy: ClusterFirstWithHostNet", "{{- end }}"
