"""
Agent and plugin share no code, but words.
"""

from __future__ import annotations

from agent.model.decision import Outcome
from kubectl_gpufence.verdicts import VERDICTS


def test_every_verdict_of_this_versions_agent_is_known() -> None:
    """
    The plugin has a meaning for each word an agent may say, and for none besides.
    """
    unjudged = {""}

    assert {str(item) for item in Outcome} | unjudged == set(VERDICTS)
