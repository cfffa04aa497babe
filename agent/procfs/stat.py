"""
PURE. /proc/PID/stat as far as it names a process.
"""

from __future__ import annotations

from typing import NamedTuple

_STATE = 0
_STARTED = 19
_GONE = frozenset("ZXx")


class Stat(NamedTuple):
    """
    `started_ticks` counts from the machine's boot; a `gone` process has ended but is still listed.
    """

    command: str
    gone: bool
    started_ticks: int


def parse_stat(text: str) -> Stat | None:
    """
    Read the line, counting fields from the last parenthesis: a program may be called `a) R (b`.
    """
    head, closed, tail = text.rpartition(")")
    fields = tail.split(None, _STARTED + 1)
    if not closed or len(fields) <= _STARTED or not fields[_STARTED].isdecimal():
        return None
    command = head.partition("(")[2]
    return Stat(command, fields[_STATE] in _GONE, int(fields[_STARTED]))
