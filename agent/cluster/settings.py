"""What the agent's part that speaks with the API server may be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gpufence.dialects import Units
from gpufence.names import AGENT, EXEMPT_NAMESPACES, SYSTEM_NAMESPACE
from gpufence.times import Backoff
from kube.watch import WatchSettings

COMPONENT: Final = AGENT
"""As what the agent signs its Events and evictions."""


class Impersonation(StrEnum):
    """Whether the agent acts as its own node."""

    AUTO = "auto"  # where the API server lets it, which takes Kubernetes 1.36 and our RBAC
    ON = "on"  # always; without the rights for it nothing works
    OFF = "off"  # never: its own account has rights on the pods of every node


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """`units` are the operator's settings, for what the Node's own figures leave open."""

    node: str
    impersonation: Impersonation = Impersonation.AUTO
    exempt_namespaces: frozenset[str] = frozenset(EXEMPT_NAMESPACES)
    units: Units = field(default_factory=Units)
    system_namespace: str = SYSTEM_NAMESPACE
    help_url: str = ""

    eviction_grace_seconds: int = 30
    """The most an evicted pod is given to end; the same number as the judge's policy."""

    act_seconds: float = 20.0
    """For one eviction with its last look, whatever the API server does."""

    pauses_seconds: tuple[float, ...] = (0.0, 0.2, 1.0)
    """
    How long is waited before each deletion of a pod in which room was made for that: an API server
    may still judge by the pod that its cache has, for which etcd has no room.
    """

    request_seconds: float = 10.0
    """For one request of an eviction, an Event or the Node's annotation."""

    publish_pause_seconds: float = 5.0
    """
    After the Node's annotation was written: somebody else may write it too, and neither gives in.
    """

    close_seconds: float = 2.0
    """For the Events that still wait when the program ends."""

    backoff: Backoff = field(default_factory=Backoff)
    watching: WatchSettings = field(default_factory=WatchSettings)
