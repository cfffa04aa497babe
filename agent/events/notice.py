"""
PURE. One thing to say about one pod, its owner or the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpufence.text import printable

if TYPE_CHECKING:
    from agent.model.pod import PodOnNode

MOST_CHARACTERS: Final = 1023
"""An Event's message may hold 1,024."""


@dataclass(frozen=True, slots=True)
class Regarding:
    """
    The object an Event is listed under; `kubectl describe` finds it by all of these.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Notice:
    """
    Two notices of the same reason, object and topic belong to one episode, whatever they say.
    Every notice is an Event of type Warning.
    """

    reason: str
    regarding: Regarding
    message: str
    topic: str = ""


def about_pod(pod: PodOnNode) -> tuple[Regarding, ...]:
    """
    Return the pod and the controller that made it, where people look once the pod is gone.
    """
    itself = Regarding("v1", "Pod", pod.namespace, pod.name, pod.uid)
    owner = pod.controller
    if owner is None:
        return (itself,)
    made_by = Regarding(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)
    return (itself, made_by)


def about_node(name: str) -> Regarding:
    """
    Return a node as kubelets write it: by its name in place of its UID.
    """
    return Regarding("v1", "Node", "", name, name)


def one_line(text: str) -> str:
    """
    Make a message printable, one line and short enough, whatever names went into it.
    """
    plain = printable(text)
    if len(plain) <= MOST_CHARACTERS:
        return plain
    return f"{plain[: MOST_CHARACTERS - 3]}..."
