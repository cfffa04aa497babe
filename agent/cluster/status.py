"""
PURE. How things stand with the API server, for metrics, health and logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpufence.mode import Mode


class Identity(StrEnum):
    """
    As whom the agent acts on pods, Events and its Node.
    """

    UNKNOWN = "unknown"  # not found out yet
    IMPERSONATING = "impersonating"  # its own node: the API server sees to it that it is no other
    PLAIN = "plain"  # its own account, by rights that reach every node


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """
    `synced`: everything has been read once. `fresh`: what is known may be acted on.

    `silence_seconds` is the longest time that any of the watches has heard nothing, None before the
    first word. `highest` is what the kill switch allows. `published`: the Node says what we know.
    """

    synced: bool = False
    fresh: bool = False
    silence_seconds: float | None = None
    highest: Mode = Mode.CAP
    identity: Identity = Identity.UNKNOWN
    published: bool = False
    events_written: int = 0
    events_dropped: int = 0
    events_refused: int = 0
    trouble: str = ""
