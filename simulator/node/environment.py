"""
PURE. A container's variables, resolved as a kubelet does at each start of the container.

Lowest first: what the image brings, what the device plugin adds, `envFrom` in its order, `env` in
its order. Variables of Services are left out: nothing that runs here looks for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.shape import Object, as_object, as_text
from simulator.node.downward import NodeFacts, field_value, resource_value
from simulator.node.errors import NotYetError
from simulator.node.expansion import expand

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simulator.node.pod import Container, Pod

CONFIG_MAP, SECRET = "ConfigMap", "Secret"
_KEYS = {"configMapKeyRef": CONFIG_MAP, "secretKeyRef": SECRET}
_WHOLES = {"configMapRef": CONFIG_MAP, "secretRef": SECRET}


@dataclass(frozen=True, slots=True)
class Reference:
    """
    A ConfigMap or Secret of the pod's namespace that one of its containers names.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Sources:
    """
    Where values come from; an object that is not in `data` does not exist.
    """

    node: NodeFacts
    data: Mapping[Reference, Mapping[str, str]] = field(default_factory=dict)


def references(container: Container) -> frozenset[Reference]:
    """
    Name everything that has to be read before the variables can be resolved.
    """
    return frozenset(_references(container))


def resolve(container: Container, pod: Pod, sources: Sources) -> dict[str, str]:
    """
    Resolve `envFrom` and `env`.

    Raises NotYetError for what is not there and not optional; with it the container waits as
    CreateContainerConfigError.
    """
    variables: dict[str, str] = {}
    for entry in container.env_from:
        variables |= _whole(entry, pod, sources)
    for entry in container.env:
        name = as_text(entry.get("name"), "env.name")
        literal = as_text(entry.get("value"), name)
        source = as_object(entry.get("valueFrom"), name)
        if literal or not source:
            variables[name] = expand(literal, variables)
            continue
        value = _value(source, container, pod, sources)
        if value is not None:
            variables[name] = value
    return variables


def command_line(
    container: Container, variables: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Expand command and arguments; unlike `env`, they may refer to the device plugin's variables.
    """
    return (
        tuple(expand(word, variables) for word in container.command),
        tuple(expand(word, variables) for word in container.args),
    )


def _references(container: Container) -> Iterator[Reference]:
    for entry in container.env_from:
        for field_name, kind in _WHOLES.items():
            if field_name in entry:
                yield Reference(kind, _name(entry, field_name))
    for entry in container.env:
        source = as_object(entry.get("valueFrom"), "valueFrom")
        for field_name, kind in _KEYS.items():
            if field_name in source:
                yield Reference(kind, _name(source, field_name))


def _whole(entry: Object, pod: Pod, sources: Sources) -> dict[str, str]:
    prefix = as_text(entry.get("prefix"), "envFrom.prefix")
    found: dict[str, str] = {}
    for field_name, kind in _WHOLES.items():
        if field_name in entry:
            data = _data(Reference(kind, _name(entry, field_name)), entry, field_name, pod, sources)
            found |= {prefix + key: value for key, value in (data or {}).items()}
    return found


def _value(source: Object, container: Container, pod: Pod, sources: Sources) -> str | None:
    """
    Return the value of a `valueFrom`, or None where it is optional and not there.
    """
    if "fieldRef" in source:
        field_ref = as_object(source.get("fieldRef"), "fieldRef")
        return field_value(pod, sources.node, as_text(field_ref.get("fieldPath"), "fieldPath"))
    if "resourceFieldRef" in source:
        wish = as_object(source.get("resourceFieldRef"), "resourceFieldRef")
        resource = as_text(wish.get("resource"), "resource")
        divisor = as_text(wish.get("divisor"), "divisor") or "0"
        return resource_value(container, sources.node, resource, divisor)
    for field_name, kind in _KEYS.items():
        if field_name in source:
            reference = Reference(kind, _name(source, field_name))
            data = _data(reference, source, field_name, pod, sources)
            return _key(data, source, field_name, reference, pod)
    raise NotYetError(f"valueFrom: {', '.join(source)} is not simulated; use a fieldRef")


def _key(
    data: Mapping[str, str] | None, source: Object, field_name: str, reference: Reference, pod: Pod
) -> str | None:
    if data is None:
        return None
    key = as_text(as_object(source.get(field_name), field_name).get("key"), "key")
    if key not in data and not _optional(source, field_name):
        raise NotYetError(
            f"couldn't find key {key} in {reference.kind} {pod.namespace}/{reference.name}"
        )
    return data.get(key)


def _data(
    reference: Reference, parent: Object, field_name: str, pod: Pod, sources: Sources
) -> Mapping[str, str] | None:
    found = sources.data.get(reference)
    if found is None and not _optional(parent, field_name):
        raise NotYetError(
            f'{reference.kind.lower()} "{reference.name}" not found in namespace {pod.namespace}'
        )
    return found


def _name(parent: Object, field_name: str) -> str:
    return as_text(as_object(parent.get(field_name), field_name).get("name"), "name")


def _optional(parent: Object, field_name: str) -> bool:
    return as_object(parent.get(field_name), field_name).get("optional") is True
