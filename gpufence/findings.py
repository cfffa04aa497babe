"""
What a check found, in one sentence: `gpufence-agent check` and `kubectl gpufence doctor` say it so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """From harmless to in the way of what gpufence is there for."""

    OK = "ok"
    LOOK = "look"  # works, but less than it could, or somebody should know
    WRONG = "wrong"  # something does not work that should
    UNKNOWN = "unknown"  # it could not be found out, mostly for want of a permission


class Finding(NamedTuple):
    """One sentence on one subject, and a remedy for all that is not well."""

    level: Level
    subject: str
    text: str
    remedy: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding(Level.OK, subject, text)


def look(subject: str, text: str, remedy: str) -> Finding:
    return Finding(Level.LOOK, subject, text, remedy)


def wrong(subject: str, text: str, remedy: str) -> Finding:
    return Finding(Level.WRONG, subject, text, remedy)


def unknown(subject: str, text: str, remedy: str) -> Finding:
    return Finding(Level.UNKNOWN, subject, text, remedy)
