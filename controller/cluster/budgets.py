"""PURE. PodDisruptionBudgets: whom they cover, and how many of those may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kube.replies import JsonObject

MOST_REQUIREMENTS: Final = 64
"""Beyond it a budget counts as one that covers every pod of its namespace."""


class Requirement(NamedTuple):
    """One line of a selector."""

    key: str
    operator: str
    values: frozenset[str]


class KeptBudget(NamedTuple):
    """A budget. `selector` is None where it covers nobody."""

    namespace: str
    selector: tuple[Requirement, ...] | None
    allowed: int


def keep_budget(budget: JsonObject) -> tuple[str, KeptBudget]:
    """Keep whom a budget covers, and how many of them may go; none where it does not say yet."""
    metadata, spec, status = (part_of(budget, key) for key in ("metadata", "spec", "status"))
    allowed = status.get("disruptionsAllowed")
    current = status.get("observedGeneration") == metadata.get("generation")
    return str(metadata.get("uid", "")), KeptBudget(
        namespace=str(metadata.get("namespace", "")),
        selector=_selector(spec.get("selector")),
        allowed=allowed if isinstance(allowed, int) and current else 0,
    )


def least_allowed(
    budgets: Iterable[KeptBudget], labels: Collection[Mapping[str, str] | None]
) -> int | None:
    """
    Return how many pods with these labels may go at once by the budgets of their namespace; None
    where no budget covers any of them. A pod whose labels nobody knows is covered by each.
    """
    return min(
        (
            budget.allowed
            for budget in budgets
            if budget.selector is not None
            and any(each is None or _covers(budget.selector, each) for each in labels)
        ),
        default=None,
    )


def _selector(selector: Any) -> tuple[Requirement, ...] | None:  # noqa: ANN401 - JSON as it came
    if not isinstance(selector, dict):
        return None
    found = [
        Requirement(key, "In", frozenset([str(value)]))
        for key, value in part_of(selector, "matchLabels").items()
    ]
    for item in selector.get("matchExpressions") or []:
        values = item.get("values") or []
        operator = str(item.get("operator"))
        found.append(Requirement(str(item.get("key")), operator, frozenset(map(str, values))))
    return tuple(found) if len(found) <= MOST_REQUIREMENTS else ()


def _covers(selector: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    return all(_holds(requirement, labels) for requirement in selector)


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    among = value in requirement.values
    return among if requirement.operator == "In" else not among
