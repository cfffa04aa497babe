"""
The agent's time: seconds since the machine booted, in which the kernel dates processes as well.
"""

from __future__ import annotations

import time


def boottime() -> float:
    """
    Return the seconds of CLOCK_BOOTTIME, which nobody can set and which goes on in suspension.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def booted() -> float:
    """Return the Unix time at which the boottime was zero; it moves when the clock is set."""
    return time.time() - boottime()


def timestamp() -> str:
    """Return the time of day in UTC as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
