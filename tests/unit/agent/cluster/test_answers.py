"""Every row of the table of answers to an eviction."""

from typing import Any

import pytest

from agent.cluster.acts import is_unsure, read_refusal
from agent.model.decision import Answer
from kube.errors import BadReplyError, Failure, KubeError, UnreachableError, error_for

BUDGET: dict[str, Any] = {
    "causes": [{"reason": "DisruptionBudget", "message": "budget all has 0 left"}]
}
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction does not support."

TOO_LARGE = "etcdserver: request is too large"
TOO_LONG = "trying to send message larger than max (2097153 vs. 2097152)"
FULL = "etcdserver: mvcc: database space exceeded"


def failure(
    status: int, message: str = "no", after: float | None = None, **details: Any
) -> KubeError:
    return error_for(Failure("POST eviction", status, "Reason", message, after, details))


@pytest.mark.parametrize(
    ("error", "answer", "after"),
    [
        pytest.param(failure(429, **BUDGET), Answer.BLOCKED, 0.0, id="budget"),
        pytest.param(failure(429, after=10.0, **BUDGET), Answer.BLOCKED, 10.0, id="budget-later"),
        pytest.param(failure(429, after=1.0), Answer.FAILED, 1.0, id="rate limit"),
        pytest.param(failure(500, SEVERAL), Answer.BLOCKED, 0.0, id="several budgets"),
        pytest.param(failure(500, "etcd is gone"), Answer.FAILED, 0.0, id="server error"),
        pytest.param(failure(500, TOO_LARGE), Answer.TOO_LARGE, 0.0, id="too large for etcd"),
        pytest.param(failure(500, TOO_LONG), Answer.TOO_LARGE, 0.0, id="too large for gRPC"),
        pytest.param(failure(500, FULL), Answer.FAILED, 0.0, id="etcd's disk is full"),
        pytest.param(failure(403, **BUDGET), Answer.BLOCKED, 0.0, id="negative allowance"),
        pytest.param(
            failure(403, kind="poddisruptionbudgets"), Answer.BLOCKED, 0.0, id="before 1.37"
        ),
        pytest.param(failure(403, kind="pods"), Answer.FAILED, 0.0, id="no rights"),
        pytest.param(failure(504, after=10.0), Answer.FAILED, 10.0, id="budget conflicts"),
        pytest.param(failure(404), Answer.GONE, 0.0, id="gone"),
        pytest.param(failure(400), Answer.FAILED, 0.0, id="our mistake"),
        pytest.param(BadReplyError("a proxy's page"), Answer.FAILED, 0.0, id="proxy"),
        pytest.param(UnreachableError("away"), Answer.FAILED, 0.0, id="away"),
    ],
)
def test_refusals(error: KubeError, answer: Answer, after: float) -> None:
    """Only a budget's own word blocks; all else fails, and says why."""
    result = read_refusal(error)

    assert (answer, after) == (result.answer, result.after_seconds)
    assert result.detail


def test_the_budget_is_named() -> None:
    """The cause below the message names the budget."""
    assert "no budget all has 0 left" == read_refusal(failure(429, **BUDGET)).detail


def test_a_second_look() -> None:
    """A conflict and a broken connection leave open what happened."""
    unsure = [is_unsure(item) for item in (failure(409), UnreachableError("away"), failure(500))]

    assert [True, True, False] == unsure
