"""
Time as the node needs it: one clock for durations, one for what the API is told.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime


def monotonic() -> float:
    """
    Return seconds that only ever grow.
    """
    return time.monotonic()


def timestamp() -> str:
    """
    Return the time of day as Kubernetes writes it.
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def precise_timestamp() -> str:
    """
    Return the time of day with microseconds, as leases carry it.
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
