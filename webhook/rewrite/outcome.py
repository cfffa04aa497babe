"""
PURE. What can become of a pod, as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpufence.plan import Plan
    from webhook.operations import Operation


@dataclass(frozen=True, slots=True)
class Rewrite:
    """
    The pod is changed by JSON-patch operations; the warnings are shown to whoever created it.

    The operations are shared between pods: whoever applies them changes a copy.
    """

    operations: tuple[Operation, ...]
    warnings: tuple[str, ...]
    plan: Plan
    summary: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """
    The pod stays as it is.
    """

    reason: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """
    The pod is not let in, for a reason its creator can read and act on.
    """

    message: str
