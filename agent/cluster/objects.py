"""
PURE. What is sent: Events, evictions, deletions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names

if TYPE_CHECKING:
    from agent.events import Notice
    from agent.model.pod import PodOnNode
    from kube.replies import JsonObject

COMPONENT: Final = "gpufence-agent"
NODE_EVENTS: Final = "default"
"""Where Events of objects without a namespace live, by the custom of client-go."""

_LONGEST_NAME = 253
_LONGEST_INSTANCE = 128
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Written(NamedTuple):
    """
    An Event of ours as the API server knows it; `first` is when it began.
    """

    namespace: str
    name: str
    first: str


def name_event(notice: Notice, unique: str, now: str) -> Written:
    """
    Name an Event after its object, as kubectl users expect, if that makes a name.
    """
    name = f"{notice.regarding.name}.{unique}"
    if len(name) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
        name = f"{COMPONENT}.{unique}"
    return Written(notice.regarding.namespace or NODE_EVENTS, name, now)


def event(notice: Notice, event_name: Written, node: str, count: int, now: str) -> JsonObject:
    """
    Make a core/v1 Event, the form that every version of kubectl shows with its count.
    """
    about = notice.regarding
    involved = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "name": about.name,
        "uid": about.uid,
    }
    if about.namespace:
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": event_name.namespace, "name": event_name.name},
        "involvedObject": involved,
        "type": "Warning",
        "reason": notice.reason,
        "message": notice.message,
        "firstTimestamp": event_name.first,
        "lastTimestamp": now,
        "count": count,
        "source": {"component": COMPONENT, "host": node},
        "reportingComponent": COMPONENT,
        "reportingInstance": node[:_LONGEST_INSTANCE],
    }


def event_patch(notice: Notice, count: int, now: str) -> JsonObject:
    return {"count": count, "lastTimestamp": now, "message": notice.message}


def eviction(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    """
    Ask for the eviction of this very pod: a StatefulSet's next one has the same name.

    The annotations are for admission hooks and audit logs, as the descheduler writes them.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "namespace": pod.namespace,
            "name": pod.name,
            "annotations": {"reason": names.EVICTED, "requested-by": COMPONENT},
        },
        "deleteOptions": _options(pod, most_grace_seconds),
    }


def deletion(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, most_grace_seconds)}


def _options(pod: PodOnNode, most_grace_seconds: int) -> JsonObject:
    # Zero would take the pod out of the API at once, while its processes still hold their memory.
    grace = max(min(pod.grace_seconds, most_grace_seconds), 1)
    return {"gracePeriodSeconds": grace, "preconditions": {"uid": pod.uid}}
