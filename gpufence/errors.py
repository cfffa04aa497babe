"""
The exceptions of gpufence, one class per reaction of a caller.

GpufenceError              anything gpufence raises on purpose
├── InvalidError           somebody wrote what cannot be read: show the problem, change nothing
│   └── SettingsError      our own settings: print every problem and do not start
├── UnknownVersionError    a format newer than this program: fall back, never guess
└── kube.errors.KubeError  what the API server or the way to it answered (see kube/errors.py)

What is expected to go wrong while deciding is a value (`Problem`), not an exception: a pod with an
unreadable annotation is an ordinary pod, and its problem is an ordinary result. What a check of an
installation says is a `Finding`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpufence.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


SHOWN_CHARACTERS = 80
_FIELD_CHARACTERS = 400


class Problem(NamedTuple):
    """
    What is wrong, where, and what to do: the one form in which every part says so.

    `key` is the annotation that is wrong, for those who decide by it; `field` is for people.
    """

    field: str
    value: str
    reason: str
    remedy: str
    key: str = ""

    @property
    def sentence(self) -> str:
        field = printable(self.field, _FIELD_CHARACTERS)
        return printable(f"{field}: {shown(self.value)} {self.reason}; {self.remedy}")


def annotation_problem(key: str, value: str, reason: str, remedy: str) -> Problem:
    return Problem(f"metadata.annotations[{key}]", value, reason, remedy, key)


def described(value: object) -> str:
    """
    Write a value that should have been another, whatever it is: what is nested too deep, or has
    more digits than Python writes, by its type.
    """
    if isinstance(value, str):
        return value
    try:
        return repr(value)
    except (RecursionError, ValueError):
        return f"{type(value).__name__} that cannot be written down"


def shown(value: object) -> str:
    """Quote a value for a person, on one line and short, whatever somebody put into it."""
    text = described(value)
    return f'"{printable(text, SHOWN_CHARACTERS)}"'


class GpufenceError(Exception):
    """Anything gpufence raises on purpose."""


class InvalidError(GpufenceError):
    """Raised for text that cannot be read; carries the problem for what reports it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


class SettingsError(InvalidError):
    """Raised once, at start, with everything that is wrong with a program's settings."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0])
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(problem.sentence for problem in self.problems)


class UnknownVersionError(GpufenceError):
    """
    Raised for a format written by a newer gpufence; the caller falls back to what it can work out.
    """

    def __init__(self, field: str, version: object) -> None:
        super().__init__(
            f"{field}: version {shown(version)} is not known to this gpufence; "
            "upgrade this program, it reads version 1"
        )
        self.field = field
        self.version = version


class Level(StrEnum):
    """From harmless to in the way of what gpufence is there for."""

    OK = "ok"
    STARTING = "starting"  # was made a moment ago, and need not be well yet
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
