"""
PURE. When to look next: by the clock, not by when the last look ended.
"""

from __future__ import annotations


def next_due(due: float, now: float, interval_seconds: float) -> tuple[float, int]:
    """
    Return when the tick after the one that was due at `due` is due, and how many are left out.

    Ticks stay multiples of the interval apart however long each takes; those whose time passed
    while another was running are left out, never made up for.
    """
    late = max(now - due, 0.0)
    skipped = int(late // interval_seconds)
    return due + (skipped + 1) * interval_seconds, skipped
