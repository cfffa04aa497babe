"""
PURE. What a check found, and what helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """
    From harmless to in the way of every eviction.
    """

    OK = "ok"
    WARNING = "warning"  # works, but less than it could, or not to be known from here
    MISSING = "missing"  # without it nobody is evicted, or nothing is measured


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One thing that was looked at; `remedy` is empty where nothing is to be done.
    """

    subject: str
    state: State
    text: str
    remedy: str = ""


def fine(subject: str, text: str) -> Finding:
    return Finding(subject, State.OK, text)


def warning(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject, State.WARNING, text, remedy)


def missing(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject, State.MISSING, text, remedy)
