"""
PURE. What the downward API tells a container about its pod and its resources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence.quantity import NANO, read_nano
from simulator.node.errors import NotYetError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.node.pod import Container, Pod

_MILLI = 10**6
_DIVISIBLE = {"memory", "ephemeral-storage"}
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
_LAST_ASCII, _LAST_SHORT = 0x7F, 0xFFFF


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """
    What pods can learn about their node. They run in its network, so its address is theirs.
    """

    name: str
    address: str
    allocatable: Mapping[str, str] = field(default_factory=dict)


def field_value(pod: Pod, node: NodeFacts, path: str) -> str:
    """
    Return a field by its path; an annotation or label that is not there is empty, not an error.
    """
    base, key = _split(path)
    if key is not None:
        if base == "metadata.annotations":
            return pod.annotations.get(key, "")
        if base == "metadata.labels":
            return pod.labels.get(key, "")
        raise NotYetError(f'fieldPath "{base}" does not support subscript')
    values = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "metadata.annotations": _lines(pod.annotations),
        "metadata.labels": _lines(pod.labels),
        "spec.nodeName": pod.node,
        "spec.serviceAccountName": pod.service_account,
        **dict.fromkeys(("status.hostIP", "status.hostIPs"), node.address),
        **dict.fromkeys(("status.podIP", "status.podIPs"), node.address),
    }
    if path not in values:
        raise NotYetError(f"unsupported fieldPath: {path}")
    return values[path]


def resource_value(container: Container, node: NodeFacts, resource: str, divisor: str) -> str:
    """
    Return a limit or request in units of the divisor, rounded up.

    Without a limit the node's allocatable counts; extended resources are never told.
    """
    side, _, name = resource.partition(".")
    if side not in {"limits", "requests"} or (name != "cpu" and name not in _DIVISIBLE):
        raise NotYetError(f"unsupported container resource : {resource}")
    amounts = container.requests
    if side == "limits":
        amounts = {**node.allocatable, **container.limits}
    unit = _MILLI if name == "cpu" else NANO
    amount = _whole(amounts.get(name, "0"), resource, unit)
    share = _whole(divisor, "divisor", unit) or NANO // unit
    return str(-(-amount // share))


def _whole(quantity: str, name: str, unit: int) -> int:
    return -(-read_nano(quantity, name) // unit)


def _split(path: str) -> tuple[str, str | None]:
    base, opening, rest = path.partition("['")
    if base and opening and rest.endswith("']"):
        return base, rest.removesuffix("']")
    return path, None


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _plain(char) for char in text) + '"'


def _plain(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_SHORT else f"\\U{code:08x}"
