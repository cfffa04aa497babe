"""
PURE. What was found, for people and for programs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from agent.tables import table
from gpufence.findings import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.findings import Finding

VERSION: Final = 1

_STATES: Final = {Level.LOOK: "warning", Level.WRONG: "missing"}
"""This command's words: what is wrong with a node is that something is missing."""


def can_enforce(found: Sequence[Finding]) -> bool:
    return all(item.level is not Level.WRONG for item in found)


def as_text(found: Sequence[Finding]) -> str:
    """
    Write a table, then the remedies, then the answer.
    """
    lines = [table(("CHECK", "STATE", "FOUND"), [(i.subject, _state(i), i.text) for i in found])]
    remedies = [item for item in found if item.remedy]
    if remedies:
        lines.append("\n")
        lines += [f"{item.subject}: {item.remedy}\n" for item in remedies]
    answer = "can" if can_enforce(found) else "cannot"
    lines.append(f"\nThis node {answer} be enforced.\n")
    return "".join(lines)


def as_json(found: Sequence[Finding]) -> str:
    said = {
        "v": VERSION,
        "enforceable": can_enforce(found),
        "checks": [
            {
                "subject": item.subject,
                "state": _state(item),
                "text": item.text,
                "remedy": item.remedy,
            }
            for item in found
        ],
    }
    return json.dumps(said, indent=2) + "\n"


def _state(found: Finding) -> str:
    return _STATES.get(found.level, str(found.level))
