"""
PURE. The annotations by which a decision can be read with kubectl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from webhook.rewrite import sentences
from webhook.rewrite.notes import write_warnings

if TYPE_CHECKING:
    from webhook.rewrite.case import Case
    from webhook.rewrite.decide import Decision


def record(case: Case, decision: Decision) -> dict[str, str]:
    """
    Return the annotations of a decision: the slots, and what explains them.
    """
    said = {names.ENV_PREFIX + slot: text for slot, text in decision.values.items()}
    said[names.PLAN] = decision.text
    said[names.INJECTED] = decision.injected
    said[names.SUMMARY] = decision.summary
    if decision.warnings:
        said[names.WARNINGS] = write_warnings(decision.warnings)
    card = sentences.card(case) if decision.dialect is not None else ""
    if card:
        said[names.CARD] = card
    if case.node is not None:
        said[names.NODE] = case.node.name
    if any(told.hook_obstacle == "" for told in decision.told):
        said[names.SITECUSTOMIZE] = case.policy.hook_source
    return said
