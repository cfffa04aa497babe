"""
PURE. What is remembered of each object that is watched: little, so that memory stays flat.

Only the shape is trusted here that every API server gives; annotations are read elsewhere, and what
is unreadable in them is kept as it is. What a tenant can make long or many has a bound, far above
what makes sense: beyond it a text is kept as one that nobody can read.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from gpufence import names
from gpufence.capped import OTHER_WORDS, is_silent, last_words
from gpufence.devices import MOST_READ
from gpufence.dialects import (
    ANNOTATION_KEYS,
    CARD_KEYS,
    GPU_RESOURCES,
    NODE_RESOURCES,
    PREFIXES,
    keys_of_container,
)
from gpufence.pods import MOST_OF_START, limits_refused
from kube.informers.views import MOST_CHARACTERS, UNREADABLE, name_of
from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube.replies import JsonObject

Named: TypeAlias = "tuple[str, JsonObject]"

_FORGOTTEN: Final = frozenset({names.SITECUSTOMIZE, names.SUMMARY, names.WARNINGS})
_MEANT: Final = {
    *names.USER_KEYS,
    *names.WRITTEN_KEYS,
    *ANNOTATION_KEYS,
    *CARD_KEYS,
    names.MIRROR,
} - _FORGOTTEN
_SHARING: Final = frozenset(
    {names.GKE_CLIENTS, names.GKE_SHARING, names.GFD_REPLICAS, names.GFD_SHARING}
)
_ZERO: Final = ("0", 0)
_CONDITIONS: Final = (names.GPU_IDLE, names.GPU_MEMORY)
_DRIVER: Final = (names.DRIVER_LIMIT, names.DRIVER_REQUEST)
_MOST_NUMBER: Final = 24
MOST_REASON: Final = 64
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


MOST_CONTAINERS: Final = 512
MOST_RESOURCES: Final = 64
MOST_LABELS: Final = 64
"""Of one pod: its containers of each kind, and what each of them asks for."""
_OWNER_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,319}", re.ASCII)
"""Of a group with its version, a kind, a name and a UID the first is the longest."""


def filter_pod(pod: JsonObject) -> Named:
    """
    Keep, by UID, what limits, verdicts and metrics are made of.

    Probes, conditions of others and images change all day long and decide nothing.
    """
    metadata, spec, status = (part_of(pod, key) for key in ("metadata", "spec", "status"))
    containers = {key: _containers(spec, key) for key in ("containers", "initContainers")}
    kept = {
        "metadata": {
            **_some(metadata, "uid", "namespace", "name", "creationTimestamp", "deletionTimestamp"),
            "labels": dict(islice(part_of(metadata, "labels").items(), MOST_LABELS)),
            "annotations": _bounded(_of_pod(part_of(metadata, "annotations"), containers)),
            "ownerReferences": [
                _owner(item)
                for item in metadata.get("ownerReferences") or []
                if item.get("controller")
            ],
        },
        "spec": {
            **_some(spec, "nodeName", "terminationGracePeriodSeconds"),
            "nodeSelector": _sharing(part_of(spec, "nodeSelector")),
            **containers,
            "resourceClaims": [
                _some(item, "name", "resourceClaimName", "resourceClaimTemplateName")
                for item in (spec.get("resourceClaims") or [])[:MOST_READ]
            ],
            **_of_host(spec),
        },
        "status": {
            **_some(status, "phase"),
            **_claims(status),
            **_own_conditions(status),
            **{
                key: [
                    {**_some(item, "name", "containerID"), **words}
                    for item in status[key]
                    for words in (_last_words(item),)
                    # Of one that has not started there is nothing else to see.
                    if item.get("containerID") or words
                ]
                for key in _STATUSES
                if status.get(key)
            },
        },
    }
    return str(metadata.get("uid", "")), kept


def filter_node(node: JsonObject) -> Named:
    """Keep what tells the units of this node's resources, and what we wrote there ourselves."""
    metadata, status = part_of(node, "metadata"), part_of(node, "status")
    kept = {
        "metadata": {
            **_some(metadata, "name", "uid"),
            "labels": {
                **_sharing(part_of(metadata, "labels")),
                **_some(part_of(metadata, "labels"), names.DRIVER_LIMITS),
            },
            "annotations": _some(
                part_of(metadata, "annotations"), names.CARDS, names.DRIVER_CANARY
            ),
        },
        "status": {key: _gpus(part_of(status, key)) for key in ("allocatable", "capacity")},
    }
    return name_of(node), kept


def _of_host(spec: JsonObject) -> JsonObject:
    """Keep that a pod mounts something of its node."""
    mounts = any(item.get("hostPath") for item in spec.get("volumes") or [])
    return {"volumes": [{"hostPath": {}}]} if mounts else {}


def _own_conditions(status: JsonObject) -> JsonObject:
    found = {
        kind: _some(item, "type", "status")
        for item in status.get("conditions") or []
        if isinstance(item, dict) and (kind := item.get("type")) in _CONDITIONS
    }
    return {"conditions": [*found.values()]} if found else {}


def _claims(status: JsonObject) -> JsonObject:
    """Keep which ResourceClaims were made for the pod."""
    made = (status.get("resourceClaimStatuses") or [])[:MOST_READ]
    kept: JsonObject = {}
    if made:
        kept["resourceClaimStatuses"] = [_some(item, "name", "resourceClaimName") for item in made]
    extended = part_of(status, "extendedResourceClaimStatus")
    if extended:
        mappings = (extended.get("requestMappings") or [])[:MOST_RESOURCES]
        kept["extendedResourceClaimStatus"] = {
            **_some(extended, "resourceClaimName"),
            "requestMappings": [
                _some(item, "containerName", "requestName", "resourceName") for item in mappings
            ],
        }
    return kept


def _last_words(status: JsonObject) -> JsonObject:
    """
    Keep how a container failed when it ended last, with what its message says about GPU memory, or
    that it cannot start with the driver's limit; and why it waits since.
    """
    kept: JsonObject = {}
    runs = "running" in part_of(status, "state")
    for when in ("lastState", "state"):
        state = part_of(status, when)
        ended, waits = part_of(state, "terminated"), part_of(state, "waiting")
        if ended.get("exitCode"):
            kept[when] = {"terminated": {**_some(ended, "exitCode", "finishedAt"), **_said(ended)}}
        elif waits and (kept or _refused(waits)):
            kept[when] = {"waiting": _said(waits)}
        if runs and when in kept and _refused(ended):
            del kept[when]
    return {**kept, **_some(status, "restartCount")} if kept else {}


def _said(words: JsonObject) -> JsonObject:
    """Keep of a message what is meant to be understood, or that there is another."""
    text, reason = str(words.get("message", "")), str(words.get("reason", ""))[:MOST_REASON]
    message = text[:MOST_OF_START] if _refused(words) else last_words(text)
    return {"reason": reason, "message": message or ("" if is_silent(text) else OTHER_WORDS)}


def _refused(words: JsonObject) -> str:
    return limits_refused(str(words.get("reason", "")), str(words.get("message", "")))


def _containers(spec: JsonObject, key: str) -> list[JsonObject]:
    return [_container(item) for item in (spec.get(key) or [])[:MOST_CONTAINERS]]


def _container(item: JsonObject) -> JsonObject:
    limits = part_of(part_of(item, "resources"), "limits")
    asked = [
        (key, amount)
        for key, amount in limits.items()
        if amount not in _ZERO and (key in GPU_RESOURCES or key.startswith(PREFIXES))
    ]
    # Of those known by their beginning alone there may be thousands: they crowd out none.
    asked.sort(key=lambda pair: pair[0] not in GPU_RESOURCES)
    kept: JsonObject = {"limits": dict(asked[:MOST_RESOURCES])}
    claims = (part_of(item, "resources").get("claims") or [])[:MOST_RESOURCES]
    if claims:
        kept["claims"] = [_some(use, "name", "request") for use in claims]
    env = {
        name: {"name": name, "value": str(each.get("value", ""))[:_MOST_NUMBER]}
        for each in item.get("env") or []
        if (name := each.get("name")) in _DRIVER
    }
    driver = {"env": [*env.values()]} if env else {}
    return {**_some(item, "name", "restartPolicy"), "resources": kept, **driver}


def _owner(reference: JsonObject) -> JsonObject:
    """Keep who owns a pod; the API server does not ask whether anybody could be called that."""
    kept = _some(reference, "apiVersion", "kind", "name", "uid", "controller")
    return {
        key: UNREADABLE if isinstance(text, str) and not _OWNER_WORD.fullmatch(text) else text
        for key, text in kept.items()
    }


def _bounded(texts: dict[str, str]) -> dict[str, str]:
    """Keep as much as makes sense, the shortest first."""
    kept = {}
    left = MOST_CHARACTERS
    for key in sorted(texts, key=lambda key: (len(texts[key]), key)):
        size = len(key) + len(texts[key])
        kept[key] = texts[key] if size <= left else UNREADABLE
        left -= min(size, left)
    return kept


def _of_pod(annotations: JsonObject, containers: Mapping[str, list[JsonObject]]) -> dict[str, str]:
    """Keep the keys that mean something on this pod: any other could be there by the thousand."""
    names_of = (item.get("name", "") for items in containers.values() for item in items)
    meant = _MEANT.union(key for name in names_of for key in keys_of_container(name))
    return {key: text for key, text in annotations.items() if key in meant}


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
