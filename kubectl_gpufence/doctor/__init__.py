"""
PURE. `doctor`: whether everything is installed, running and seen; what is wrong has its remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.findings import Finding, Level
from kubectl_gpufence.doctor.agents import check_agents
from kubectl_gpufence.doctor.finding import is_wrong, told, told_json
from kubectl_gpufence.doctor.namespaces import check_namespaces
from kubectl_gpufence.doctor.server import check_rights, check_server
from kubectl_gpufence.doctor.webhook import check_webhook

if TYPE_CHECKING:
    from kubectl_gpufence.doctor.facts import Facts

__all__ = ["Finding", "Level", "examine", "is_wrong", "told", "told_json"]


def examine(facts: Facts) -> list[Finding]:
    """
    Make every check that the facts allow, from the ground up.
    """
    return [
        *check_server(facts),
        *check_rights(facts),
        *check_webhook(facts),
        *check_agents(facts),
        *check_namespaces(facts),
    ]
