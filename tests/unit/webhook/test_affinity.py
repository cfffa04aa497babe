"""
Which nodes a pod allows, by the rules of the Kubernetes scheduler: whose cards are candidates.
"""

from typing import Any

import pytest

from gpufence.errors import InvalidError
from gpufence.pods import read_pod
from tests.support.builders import A100_BYTES, card, gpushare, node, pod
from tests.support.rewriting import T4, gpu_node
from webhook.fleet import Fleet

LABELS = {"zone": "a", "cards": "4", "empty": ""}
NODE = node(card(memory_bytes=A100_BYTES), name="node-1", labels=LABELS)
FLEET = Fleet([gpu_node(NODE)])


def required(*terms: object) -> dict[str, Any]:
    """Build a pod with these node selector terms."""
    rule = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}
    return pod(gpushare(), affinity=affinity)


def by_label(key: str, operator: str, *values: object) -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def allowed(raw: dict[str, Any]) -> bool:
    return FLEET.candidates(read_pod(raw), T4) != (T4,)


def test_a_pod_without_rules_may_run_anywhere() -> None:
    """No rule forbids nothing."""
    assert allowed(pod(gpushare()))


@pytest.mark.parametrize(("name", "answer"), [("node-1", True), ("node-2", False)])
def test_a_named_node_is_the_only_one(name: str, *, answer: bool) -> None:
    """A pod that names its node meets no other, whatever its selector says."""
    assert answer is allowed(pod(gpushare(), nodeName=name, nodeSelector={"zone": "b"}))


@pytest.mark.parametrize(
    ("selector", "answer"),
    [
        ({"zone": "a"}, True),
        ({"zone": "a", "cards": "4"}, True),
        ({"zone": "b"}, False),
        ({"zone": "a", "other": "x"}, False),
        ({"empty": ""}, True),
        ({"other": ""}, False),
    ],
)
def test_every_label_of_a_selector_must_match(selector: dict[str, str], *, answer: bool) -> None:
    """An absent label matches nothing, not even an empty value."""
    assert answer is allowed(pod(gpushare(), nodeSelector=selector))


@pytest.mark.parametrize(
    ("requirement", "answer"),
    [
        (by_label("zone", "In", "a", "b"), True),
        (by_label("zone", "In", "b"), False),
        (by_label("other", "In", "a"), False),
        (by_label("zone", "NotIn", "a"), False),
        (by_label("zone", "NotIn", "b"), True),
        (by_label("other", "NotIn", "a"), True),
        (by_label("zone", "Exists"), True),
        (by_label("other", "Exists"), False),
        (by_label("zone", "DoesNotExist"), False),
        (by_label("other", "DoesNotExist"), True),
        (by_label("cards", "Gt", "3"), True),
        (by_label("cards", "Gt", "4"), False),
        (by_label("cards", "Lt", "5"), True),
        (by_label("cards", "Lt", "4"), False),
        (by_label("cards", "Lt", "+5"), True),
        (by_label("cards", "Gt", "-5"), True),
        (by_label("zone", "Gt", "3"), False),
        (by_label("zone", "Lt", "3"), False),
        (by_label("other", "Lt", "3"), False),
        (by_label("cards", "Gt", "3", "2"), False),
        (by_label("cards", "Gt"), False),
        (by_label("cards", "Gt", "3.5"), False),
        (by_label("cards", "Lt", "9223372036854775807"), True),
        (by_label("cards", "Lt", "9223372036854775808"), False),
        (by_label("cards", "Gt", "00000000000000000000003"), True),
        (by_label("zone", "Near", "a"), False),
    ],
    ids=lambda value: (
        "{key} {operator} {values}".format(**value) if isinstance(value, dict) else str(value)
    ),
)
def test_every_operator_means_what_the_scheduler_means(
    requirement: dict[str, object], *, answer: bool
) -> None:
    """Sets, presence and 64-bit comparisons; what cannot be compared is neither less nor more."""
    assert answer is allowed(required({"matchExpressions": [requirement]}))


@pytest.mark.parametrize(
    ("terms", "answer"),
    [
        ([], False),
        ([{}], False),
        ([{}, {"matchExpressions": [by_label("zone", "Exists")]}], True),
        (
            [
                {"matchExpressions": [by_label("zone", "In", "b")]},
                {"matchExpressions": [by_label("zone", "In", "a")]},
            ],
            True,
        ),
        (
            [{"matchExpressions": [by_label("zone", "In", "a"), by_label("cards", "In", "5")]}],
            False,
        ),
        ([{"matchFields": [by_label("metadata.name", "In", "node-1")]}], True),
        ([{"matchFields": [by_label("metadata.name", "NotIn", "node-1")]}], False),
        (
            [
                {
                    "matchFields": [by_label("metadata.name", "In", "node-1")],
                    "matchExpressions": [by_label("zone", "In", "b")],
                }
            ],
            False,
        ),
        (
            [
                {
                    "matchFields": [by_label("metadata.name", "In", "node-2")],
                    "matchExpressions": [by_label("zone", "In", "a")],
                }
            ],
            False,
        ),
    ],
    ids=[
        *("no term", "empty term", "empty term beside another", "one of two terms"),
        *("one of two requirements", "by name", "not by name", "name without label"),
        "label without name",
    ],
)
def test_one_whole_term_must_hold(terms: list[object], *, answer: bool) -> None:
    """Terms are alternatives, their requirements are not, and an empty term matches no node."""
    assert answer is allowed(required(*terms))


def test_preferences_forbid_nothing() -> None:
    """Only what is required decides."""
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}

    assert allowed(pod(gpushare(), affinity={"nodeAffinity": preferred}))


def test_a_term_of_the_wrong_shape_is_refused() -> None:
    """What is no term raises instead of matching."""
    with pytest.raises(InvalidError, match="is not an object"):
        allowed(required("zone=a"))
