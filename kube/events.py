"""PURE. Events in the form that every version of kubectl shows with its count: those of core/v1."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from gpufence.event_text import Anchor
    from kube.replies import JsonObject

NODE_EVENTS: Final = "default"
"""Where Events of objects without a namespace live, by the custom of client-go."""

LONGEST_NAME: Final = 253
LONGEST_INSTANCE: Final = 128
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Regarding(NamedTuple):
    """
    The object an Event is listed under; `kubectl describe` finds it by all of these. No namespace
    means an object of the cluster.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Reporter(NamedTuple):
    """Who says it, and which one of several: the node of an agent, or a pod."""

    component: str
    instance: str
    host: str = ""


class EventText(NamedTuple):
    """What is said; a `warning` stands out in what kubectl shows, an `anchor` is linked to."""

    reason: str
    message: str
    warning: bool = True
    anchor: Anchor | None = None


class EventPlace(NamedTuple):
    namespace: str
    name: str


class EventTimes(NamedTuple):
    """When it was first said, when it was last said, and how often."""

    first: str
    last: str
    times: int = 1


def place_of(about: Regarding, component: str, unique: str) -> EventPlace:
    """Name an Event after its object, as kubectl users expect, if that makes a name."""
    name = f"{about.name}.{unique}"
    if len(name) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
        name = f"{component}.{unique}"
    return EventPlace(about.namespace or NODE_EVENTS, name)


def make_event(
    about: Regarding, said: EventText, reporter: Reporter, place: EventPlace, times: EventTimes
) -> JsonObject:
    """Make an Event."""
    involved = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "name": about.name,
        "uid": about.uid,
    }
    if about.namespace:
        involved["namespace"] = about.namespace
    source = {"component": reporter.component}
    if reporter.host:
        source["host"] = reporter.host
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": place.namespace, "name": place.name},
        "involvedObject": involved,
        "type": "Warning" if said.warning else "Normal",
        "reason": said.reason,
        "message": said.message,
        "firstTimestamp": times.first,
        "lastTimestamp": times.last,
        "count": times.times,
        "source": source,
        "reportingComponent": reporter.component,
        "reportingInstance": reporter.instance[:LONGEST_INSTANCE],
    }
