"""
PURE. What was found, for people and for programs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from agent.check.finding import State
from agent.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.check.finding import Finding

VERSION: Final = 1


def can_enforce(found: Sequence[Finding]) -> bool:
    return all(item.state is not State.MISSING for item in found)


def as_text(found: Sequence[Finding]) -> str:
    """
    Write a table, then the remedies, then the answer.
    """
    lines = [table(("CHECK", "STATE", "FOUND"), [(i.subject, i.state, i.text) for i in found])]
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
                "state": str(item.state),
                "text": item.text,
                "remedy": item.remedy,
            }
            for item in found
        ],
    }
    return json.dumps(said, indent=2) + "\n"
