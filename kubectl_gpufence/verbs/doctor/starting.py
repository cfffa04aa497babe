"""PURE. What is not well yet because it was made a moment ago, which is no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.errors import Finding, InvalidError, Level
from gpufence.shape import Object, as_object, as_text, objects
from gpufence.times import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable

YOUNG_SECONDS: Final = 120.0


def is_young(now: float, *moments: object) -> bool:
    """Return whether one of these moments of an object is less than two minutes ago."""
    return any(_since(now, moment) < YOUNG_SECONDS for moment in moments if moment)


def is_rolling(now: float, deployment: Object) -> bool:
    """Return whether a Deployment is new, or has had its last progress a moment ago."""
    created = as_object(deployment.get("metadata"), "metadata").get("creationTimestamp")
    status = as_object(deployment.get("status"), "status")
    moved = (
        item.get("lastUpdateTime")
        for item in objects(status.get("conditions"), "status.conditions")
        if item.get("type") == "Progressing" and item.get("status") != "False"
    )
    return is_young(now, created, *moved)


def starting(findings: Iterable[Finding], *, young: bool) -> list[Finding]:
    """Let findings about what is that young be no worse than that it starts."""
    return [
        Finding(Level.STARTING, item.subject, item.text)
        if young and item.level in (Level.WRONG, Level.LOOK)
        else item
        for item in findings
    ]


def _since(now: float, moment: object) -> float:
    try:
        return now - read_moment(as_text(moment, "time"), "time")
    except InvalidError:
        return YOUNG_SECONDS
