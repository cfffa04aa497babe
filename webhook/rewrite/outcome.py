"""
PURE. What can become of a pod, as values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpufence.plan import Plan
    from webhook.operations import Operation


class Rewrite(NamedTuple):
    """
    The pod is changed by JSON-patch operations; the warnings are shown to whoever created it.

    The operations are shared between pods: whoever applies them changes a copy.
    """

    operations: tuple[Operation, ...]
    warnings: tuple[str, ...]
    plan: Plan
    summary: str


class Unchanged(NamedTuple):
    """
    The pod stays as it is.
    """

    reason: str
    warnings: tuple[str, ...] = ()


class Refusal(NamedTuple):
    """
    The pod is not let in, for a reason its creator can read and act on.
    """

    message: str
