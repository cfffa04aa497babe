"""
PURE. What a pod takes of a node, and what a node has, as the scheduler counts: millicores, bytes
and numbers.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from gpufence.errors import InvalidError
from gpufence.quantity import NANO, read_nano
from kube.replies import objects_of, part_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kube.replies import JsonObject

CPU: Final = "cpu"
PODS: Final = "pods"
MOST_RESOURCES: Final = 64
"""Of one container or one node; beyond it they are not counted."""
_MILLI: Final = NANO // 1000
_OF_POD: Final = (CPU, "memory", "hugepages-")


def effective_requests(spec: JsonObject) -> dict[str, int]:
    """
    Add up what a pod asks for: its containers and sidecars, or more where an init container needs
    it, as the pod itself says where it does, and what its runtime takes.
    """
    total: dict[str, int] = {PODS: 1}
    stays: dict[str, int] = {}
    peak: dict[str, int] = {}
    for item in objects_of(spec, "initContainers"):
        asked = _asked(part_of(item, "resources"))
        if item.get("restartPolicy") == "Always":
            _add(stays, asked)
            _raise(peak, stays)
        else:
            _raise(peak, _sum(stays, asked))
    life = dict(stays)
    for item in objects_of(spec, "containers"):
        _add(life, _asked(part_of(item, "resources")))
    _raise(life, peak)
    of_pod = _asked(part_of(spec, "resources"))
    life |= {key: amount for key, amount in of_pod.items() if key.startswith(_OF_POD)}
    _add(life, _amounts(part_of(spec, "overhead")))
    _add(total, life)
    return total


def offered(allocatable: JsonObject) -> dict[str, int]:
    """Read what a node has, rounded down."""
    return dict(_read(allocatable, up=False))


def _asked(resources: JsonObject) -> dict[str, int]:
    """Read what a container requests; what it limits and does not request, it requests too."""
    limits, requests = part_of(resources, "limits"), part_of(resources, "requests")
    return _amounts({**limits, **requests})


def _amounts(written: Mapping[str, Any]) -> dict[str, int]:
    return dict(_read(written, up=True))


def _read(written: Mapping[str, Any], *, up: bool) -> Iterator[tuple[str, int]]:
    for resource, value in islice(written.items(), MOST_RESOURCES):
        unit = _MILLI if resource == CPU else NANO
        try:
            nano = max(read_nano(value, resource), 0)
        except InvalidError:
            continue
        amount = -(-nano // unit) if up else nano // unit
        if amount:
            yield resource, amount


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    total = dict(one)
    _add(total, other)
    return total


def _raise(most: dict[str, int], other: Mapping[str, int]) -> None:
    for resource, amount in other.items():
        most[resource] = max(most.get(resource, 0), amount)
