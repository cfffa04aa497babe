"""PURE. What a node's canary has shown of its driver's limits, as the Node says it."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import NamedTuple


class Proof(StrEnum):
    """What the canary has shown; only where it `PASSED` the Node's label is the agent's."""

    PASSED = "passed"
    FAILED = "failed"
    LOST = "lost"  # it had passed


class CanaryNote(NamedTuple):
    """What one container has shown under one version of the driver, and why not more."""

    shown: Proof
    driver: str
    container: str
    why: str = ""


def read_note(text: str | None) -> CanaryNote | None:
    """Read a note; nothing where there is none that anybody can read."""
    try:
        said = json.loads(text or "")
        texts = [said.get(key, "") for key in CanaryNote._fields[1:]]
        shown = Proof(said["shown"])
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    return CanaryNote(shown, *texts) if all(isinstance(each, str) for each in texts) else None


def write_note(note: CanaryNote) -> str:
    return json.dumps({key: text for key, text in note._asdict().items() if text})
