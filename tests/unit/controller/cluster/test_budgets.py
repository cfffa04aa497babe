"""Whom PodDisruptionBudgets cover, and how many of those may go."""

from typing import Any

import pytest

from controller.cluster.projections import MOST_REQUIREMENTS, KeptBudget, keep_budget, least_allowed


def budget(selector: Any, allowed: int = 1, generation: int = 1) -> KeptBudget:
    return keep_budget(
        {
            "metadata": {"uid": "b", "namespace": "team", "generation": 1},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed, "observedGeneration": generation},
        }
    )[1]


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]}


SELECTORS: dict[str, tuple[Any, bool]] = {
    "labels": ({"matchLabels": {"app": "w"}}, True),
    "other labels": ({"matchLabels": {"app": "x"}}, False),
    "everybody": ({}, True),
    "nobody": (None, False),
    "in": (expression("In", "v", "w"), True),
    "not in": (expression("NotIn", "w"), False),
    "exists": (expression("Exists"), True),
    "absent": (expression("DoesNotExist"), False),
    "too much": ({"matchLabels": {f"{n}": "x" for n in range(MOST_REQUIREMENTS + 1)}}, True),
}


@pytest.mark.parametrize(("selector", "covered"), SELECTORS.values(), ids=SELECTORS)
def test_a_budget_covers_whom_it_selects(selector: Any, covered: bool) -> None:  # noqa: FBT001 (a parameter)
    """The least of what all of them allow counts."""
    pods = [{"app": "w"}]

    assert (1 if covered else None) == least_allowed([budget(selector)], pods)


def test_a_pod_with_too_many_labels_is_covered_by_every_budget() -> None:
    """What was not kept of them may be what a budget selects."""
    assert 1 == least_allowed([budget({"matchLabels": {"app": "x"}})], [None])
    assert None is least_allowed([budget(None)], [None])


def test_a_budget_that_does_not_say_yet_allows_none() -> None:
    """Its controller has not seen it, or says nothing readable."""
    assert (0, 0) == (budget({}, generation=0).allowed, keep_budget({})[1].allowed)
