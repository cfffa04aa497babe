"""
PURE. What an agent says of itself beside what it measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.cluster.status import ClusterStatus


@dataclass(frozen=True, slots=True)
class About:
    """
    `started` is RFC 3339; `cluster` is None where there is none; `restarts` counts replaced
    children that measure. A look older than `gap_seconds` is not shown as what is there now.
    """

    node: str
    version: str
    started: str
    gap_seconds: float
    cluster: ClusterStatus | None = None
    restarts: int = 0
