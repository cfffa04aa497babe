"""
PURE. A container's variables, resolved as a kubelet does at each start of the container.

Variables of Services are left out: nothing that runs here looks for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.shape import Object, as_object, as_text
from simulator.node.errors import NotYetError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.node.pod import NodeContainer, NodePod

CONFIG_MAP, SECRET = "ConfigMap", "Secret"
_KEYS = {"configMapKeyRef": CONFIG_MAP, "secretKeyRef": SECRET}
_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\((?P<name>[^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(?P<map>annotations|labels)\['(?P<key>.*)'\]")


@dataclass(frozen=True, slots=True)
class Reference:
    """A ConfigMap or Secret of the pod's namespace that the pod names."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ValueSources:
    """
    Where values come from. `address` is the node's and, since pods run in its network, theirs. An
    object that is not in `data` does not exist.
    """

    address: str
    data: Mapping[Reference, Mapping[str, str]] = field(default_factory=dict)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """
    Replace `$(NAME)` of known variables; unknown ones stay as they are, `$$` is one `$`.

    What a variable holds is not expanded again, and a lone `$` or `$(` is ordinary text.
    """

    def replacement(match: re.Match[str]) -> str:
        return "$" if match["escaped"] else variables.get(match["name"], match[0])

    return _VARIABLE.sub(replacement, text)


def field_value(pod: NodePod, address: str, path: str) -> str:
    """
    Return a field by its path; an annotation or label that is not there is empty, not an error.
    """
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        values = pod.annotations if subscript["map"] == "annotations" else pod.labels
        return values.get(subscript["key"], "")
    fields = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": pod.service_account,
        "status.hostIP": address,
        "status.podIP": address,
    }
    if path not in fields:
        raise NotYetError(f"unsupported fieldPath: {path}")
    return fields[path]


def field_of(parent: Object, pod: NodePod, address: str) -> str:
    """Return what a `fieldRef` names, in a variable or in a volume."""
    if "fieldRef" not in parent:
        raise NotYetError(f"{', '.join(parent)} is not simulated; use a fieldRef")
    path = as_text(as_object(parent["fieldRef"], "fieldRef").get("fieldPath"), "fieldPath")
    return field_value(pod, address, path)


def references(container: NodeContainer) -> frozenset[Reference]:
    """Return every object that has to be read before the variables can be resolved."""
    return frozenset(
        Reference(kind, as_text(as_object(source[key], key).get("name"), "name"))
        for entry in container.env
        for source in [as_object(entry.get("valueFrom"), "valueFrom")]
        for key, kind in _KEYS.items()
        if key in source
    )


def resolve(container: NodeContainer, pod: NodePod, sources: ValueSources) -> dict[str, str]:
    """
    Resolve `env` in its order.

    Raises NotYetError for what is not there and not optional; with it the container waits as
    CreateContainerConfigError.
    """
    variables: dict[str, str] = {}
    for entry in container.env:
        name = as_text(entry.get("name"), "env.name")
        literal = as_text(entry.get("value"), name)
        source = as_object(entry.get("valueFrom"), name)
        value: str | None
        if literal or not source:
            value = expand(literal, variables)
        else:
            value = _value(source, pod, sources)
        if value is not None:
            variables[name] = value
    return variables


def command_line(container: NodeContainer, variables: Mapping[str, str]) -> tuple[str, ...]:
    """
    Expand command and arguments; unlike `env`, they may refer to the device plugin's variables.
    """
    return tuple(expand(word, variables) for word in (*container.command, *container.args))


def _value(source: Object, pod: NodePod, sources: ValueSources) -> str | None:
    for key, kind in _KEYS.items():
        if key in source:
            return _key(as_object(source[key], key), kind, pod, sources)
    return field_of(source, pod, sources.address)


def _key(selector: Object, kind: str, pod: NodePod, sources: ValueSources) -> str | None:
    name, key = as_text(selector.get("name"), "name"), as_text(selector.get("key"), "key")
    data = sources.data.get(Reference(kind, name))
    if (data is None or key not in data) and selector.get("optional") is not True:
        if data is None:
            raise NotYetError(f'{kind.lower()} "{name}" not found in namespace {pod.namespace}')
        raise NotYetError(f"couldn't find key {key} in {kind} {pod.namespace}/{name}")
    return None if data is None else data.get(key)
