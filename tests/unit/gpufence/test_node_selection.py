"""Which nodes a pod allows itself."""

from collections.abc import Mapping
from typing import Any

import pytest

from gpufence.node_selection import allows, tolerates
from gpufence.pods import read_pod
from tests.support.builders import container, pod

LABELS = {"zone": "a", "cards": "8"}


def allowed(node_selector: Mapping[str, str] | None = None, *terms: dict[str, Any]) -> bool:
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec: dict[str, Any] = {"affinity": affinity} if terms else {}
    read = read_pod(pod(container(), nodeSelector=dict(node_selector or {}), **spec))
    return allows(read, "node-1", LABELS)


def by_label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def by_field(operator: str, *values: str, key: str = "metadata.name") -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("node_selector", "expected"),
    [({}, True), ({"zone": "a"}, True), ({"zone": "b"}, False), ({"rack": "1"}, False)],
)
def test_a_selector_asks_for_labels(node_selector: dict[str, str], *, expected: bool) -> None:
    """Every label of a nodeSelector must be there with its value."""
    assert expected == allowed(node_selector)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (by_label("zone", "In", "a", "b"), True),
        (by_label("zone", "In", "b"), False),
        (by_label("zone", "NotIn", "b"), True),
        (by_label("rack", "NotIn", "1"), True),
        (by_label("zone", "NotIn", "a"), False),
        (by_label("zone", "Exists"), True),
        (by_label("rack", "Exists"), False),
        (by_label("rack", "DoesNotExist"), True),
        (by_label("cards", "Gt", "4"), True),
        (by_label("cards", "Gt", "8"), False),
        (by_label("cards", "Lt", "16"), True),
        (by_label("zone", "Gt", "1"), False),
        (by_label("zone", "Like", "a"), False),
        (by_field("In", "node-1"), True),
        (by_field("In", "node-2"), False),
        (by_field("In", "node-1", key="spec.other"), False),
        ({}, False),
    ],
)
def test_a_term_is_read_as_the_scheduler_does(term: dict[str, Any], *, expected: bool) -> None:
    """Each operator on labels and on the node's name; an empty term matches no node."""
    assert expected == allowed({}, term)


def test_one_term_of_several_is_enough() -> None:
    """Terms are alternatives, and a selector beside them is not."""
    terms = (by_label("zone", "In", "b"), by_label("zone", "In", "a"))

    assert allowed({}, *terms)
    assert not allowed({"rack": "1"}, *terms)


def test_who_requires_too_much_is_allowed_nothing() -> None:
    """What a tenant writes into an affinity costs a bounded time."""
    assert not allowed({}, *[by_label("zone", "In", "a")] * 129)


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_a_toleration_covers_a_taint(toleration: dict[str, str], *, expected: bool) -> None:
    """Key, operator, value and effect count as they do to the scheduler."""
    assert expected == tolerates([toleration], [TAINT])


def test_each_taint_that_repels_must_be_tolerated() -> None:
    """No toleration, no place; a taint that only prefers others repels nobody."""
    soft = {"key": "spot", "effect": "PreferNoSchedule"}

    assert not tolerates([], [TAINT])
    assert tolerates([], [soft])
    assert not tolerates(
        [{"key": "gpu", "operator": "Exists"}], [TAINT, soft | TAINT | {"key": "b"}]
    )
