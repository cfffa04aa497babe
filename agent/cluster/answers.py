"""
PURE. What the API server's refusals of an eviction or a deletion mean.
"""

from __future__ import annotations

from typing import Final

from agent.model.decision import ActResult, Answer
from kube.errors import (
    ConflictError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    ReplyError,
    ServerError,
    ThrottledError,
    UnreachableError,
)

_BUDGET_CAUSE: Final = "DisruptionBudget"
_BUDGET_KIND: Final = "poddisruptionbudget"
_SEVERAL_BUDGETS: Final = "more than one PodDisruptionBudget"


def is_unsure(error: KubeError) -> bool:
    """
    Tell whether only another look at the pod shows what became of it.

    After a conflict the pod may be another one or merely have changed; without an answer the server
    may have acted all the same.
    """
    return isinstance(error, (ConflictError, UnreachableError))


def read_refusal(error: KubeError) -> ActResult:
    """
    Read a refusal of an eviction or a deletion.
    """
    if isinstance(error, NotFoundError):
        return ActResult(Answer.GONE, detail=str(error))
    after = error.retry_after_seconds if isinstance(error, ReplyError) else None
    answer = Answer.BLOCKED if _by_budget(error) else Answer.FAILED
    return ActResult(answer, after or 0.0, _detail(error))


def _by_budget(error: KubeError) -> bool:
    """
    Tell a budget's word from the server's own trouble: only the former is ever overridden.

    Until 1.37 the refusal of a budget in an impossible state (403) named no cause but its object.
    """
    if isinstance(error, (ThrottledError, ForbiddenError)):
        kind = str(error.failure.details.get("kind", "")).lower()
        named = any(cause.reason == _BUDGET_CAUSE for cause in error.causes)
        return named or kind.startswith(_BUDGET_KIND)
    return isinstance(error, ServerError) and _SEVERAL_BUDGETS in error.failure.message


def _detail(error: KubeError) -> str:
    if not isinstance(error, ReplyError):
        return str(error)
    causes = [cause.message for cause in error.causes if cause.message]
    return " ".join([error.failure.message, *causes])
