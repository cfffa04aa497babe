"""
PURE. What is remembered of each object that is watched: little, so that memory stays flat.

Only the shape is trusted here that every API server gives; annotations are read elsewhere, and what
is unreadable in them is kept as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpufence import names
from gpufence.dialects import ANNOTATION_KEYS, NODE_RESOURCES, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kube.replies import JsonObject

Named: TypeAlias = "tuple[str, JsonObject]"

_FORGOTTEN: Final = frozenset({names.SITECUSTOMIZE, names.SUMMARY, names.WARNINGS})
_FOREIGN: Final = frozenset({*ANNOTATION_KEYS, names.MIRROR})
_SHARING: Final = frozenset(
    {names.GKE_CLIENTS, names.GKE_SHARING, names.GFD_REPLICAS, names.GFD_SHARING}
)
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


class NamespaceTexts(NamedTuple):
    """
    The labels and annotations of a namespace that are ours.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


NO_TEXTS: Final = NamespaceTexts({}, {})


def filter_pod(pod: JsonObject) -> Named:
    """
    Keep, by UID, what limits, verdicts and metrics are made of.

    Probes, conditions and images change all day long and decide nothing.
    """
    metadata, spec, status = (_part(pod, key) for key in ("metadata", "spec", "status"))
    kept = {
        "metadata": {
            **_some(metadata, "uid", "namespace", "name", "labels", "deletionTimestamp"),
            "annotations": dict(_of_pod(_part(metadata, "annotations"))),
            "ownerReferences": [
                _some(item, "apiVersion", "kind", "name", "uid", "controller")
                for item in metadata.get("ownerReferences") or []
                if item.get("controller")
            ],
        },
        "spec": {
            **_some(spec, "nodeName", "terminationGracePeriodSeconds"),
            "nodeSelector": _sharing(_part(spec, "nodeSelector")),
            "containers": [_container(item) for item in spec.get("containers") or []],
            "initContainers": [_container(item) for item in spec.get("initContainers") or []],
            "resourceClaims": [{} for _ in spec.get("resourceClaims") or []],
        },
        "status": {
            **_some(status, "phase"),
            **{
                key: [_some(item, "name", "containerID") for item in status[key]]
                for key in _STATUSES
                if status.get(key)
            },
        },
    }
    return str(metadata.get("uid", "")), kept


def filter_namespace(namespace: JsonObject) -> tuple[str, NamespaceTexts]:
    """
    Keep the texts that are ours.
    """
    metadata = _part(namespace, "metadata")
    labels = dict(_ours(_part(metadata, "labels")))
    return _name(metadata), NamespaceTexts(labels, dict(_ours(_part(metadata, "annotations"))))


def filter_policy(policy: JsonObject) -> tuple[str, Mapping[str, str]]:
    """
    Keep what the kill switch says.
    """
    return _name(_part(policy, "metadata")), _some(_part(policy, "data"), names.POLICY_MAX_MODE)


def filter_node(node: JsonObject) -> Named:
    """
    Keep what tells the units of this node's resources, and what we wrote there ourselves.
    """
    metadata, status = _part(node, "metadata"), _part(node, "status")
    kept = {
        "metadata": {
            **_some(metadata, "name"),
            "labels": _sharing(_part(metadata, "labels")),
            "annotations": _some(_part(metadata, "annotations"), names.CARDS),
        },
        "status": {key: _gpus(_part(status, key)) for key in ("allocatable", "capacity")},
    }
    return _name(metadata), kept


def _container(item: JsonObject) -> JsonObject:
    # Every GPU resource is an extended one, which a slash in its name tells from cpu and memory.
    limits = _part(_part(item, "resources"), "limits")
    asked = {resource: amount for resource, amount in limits.items() if "/" in resource}
    return {**_some(item, "name", "restartPolicy"), "resources": {"limits": asked}}


def _of_pod(annotations: JsonObject) -> Iterator[tuple[str, str]]:
    for key, text in annotations.items():
        if key in _FOREIGN or (key.startswith(names.PREFIX) and key not in _FORGOTTEN):
            yield key, text


def _ours(texts: JsonObject) -> Iterator[tuple[str, str]]:
    for key, text in texts.items():
        if key.startswith(names.PREFIX):
            yield key, text


def _sharing(labels: JsonObject) -> JsonObject:
    return {key: text for key, text in labels.items() if key in _SHARING}


def _gpus(offered: JsonObject) -> JsonObject:
    return {
        resource: amount
        for resource, amount in offered.items()
        if resource in NODE_RESOURCES or resource.startswith(PREFIXES)
    }


def _some(item: JsonObject, *keys: str) -> JsonObject:
    return {key: item[key] for key in keys if item.get(key) is not None}


def _part(item: JsonObject, key: str) -> JsonObject:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _name(metadata: JsonObject) -> str:
    return str(metadata.get("name", ""))
