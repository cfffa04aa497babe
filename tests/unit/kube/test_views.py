"""What is kept of objects that several programs watch."""

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects import Units
from kube.informers.interning import Interner
from kube.informers.views import (
    MOST_CHARACTERS,
    UNREADABLE,
    NamespaceView,
    view_namespace,
    view_node,
    view_policy,
)


def node(name: str, **labels: str) -> dict[str, Any]:
    said = {"nvidia.com/gpu.memory": "15360", "kubernetes.io/hostname": name, **labels}
    return {
        "metadata": {"name": name, "labels": said},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }


def namespace(**labels: str) -> dict[str, Any]:
    annotations = {"gpufence.io/memory": "2Gi", "other": "text"}
    return {"metadata": {"name": "a", "labels": labels, "annotations": annotations}}


def test_only_our_texts_of_a_namespace_are_kept() -> None:
    """Other labels and annotations, some of them large, are not ours to hold."""
    item = namespace(**{names.MODE: "cap", "team": "b"})

    assert (
        "a",
        NamespaceView({names.MODE: "cap"}, {"gpufence.io/memory": "2Gi"}),
    ) == view_namespace(item)


@pytest.mark.parametrize(
    ("labels", "kept"), [({}, False), ({names.MODE: "cap"}, True), ({names.IDLE: "x"}, True)]
)
def test_a_namespace_counts_by_its_labels(labels: dict[str, str], *, kept: bool) -> None:
    """Where labels are named, one without any of them is of no concern."""
    _, found = view_namespace(namespace(**labels), (names.MODE, names.IDLE))

    assert kept == (found is not None)


@pytest.mark.parametrize("annotations", [None, {}, {"gpufence.io/memory": 7}, ["x"]])
def test_a_namespace_without_annotations_is_known_all_the_same(annotations: object) -> None:
    """No annotation is an answer, unlike no namespace."""
    item = {"metadata": {"name": "a", "annotations": annotations}}

    assert ("a", NamespaceView({}, {})) == view_namespace(item)


def test_a_text_beyond_what_makes_sense_is_unreadable() -> None:
    """What a tenant can make long has a bound."""
    text = "x" * (MOST_CHARACTERS + 1)
    _, found = view_namespace(
        {"metadata": {"name": "a", "annotations": {"gpufence.io/memory": text}}}
    )

    assert NamespaceView({}, {"gpufence.io/memory": UNREADABLE}) == found


def test_of_the_kill_switch_only_what_is_asked_for_is_kept() -> None:
    """What else stands there is of no concern."""
    item = {"metadata": {"name": "policy"}, "data": {"maxMode": "cap", "other": "x"}}

    assert ("policy", {"maxMode": "cap"}) == view_policy(item, ("maxMode", "absent"))


def test_a_node_shares_what_others_have_too() -> None:
    """Nothing is lost and nothing is added; cards and labels' keys are held once."""
    interner = Interner()
    one, other = (view_node(node(name), Units(), interner)[1] for name in ("a", "b"))

    assert one is not None
    assert other is not None
    assert node("a")["metadata"]["labels"] == one.labels
    assert one.cards is other.cards
    assert one.resources is other.resources
    assert next(iter(one.labels)) is next(iter(other.labels))


def test_a_node_without_a_gpu_is_not_kept() -> None:
    """Nor is one that cannot be read at all: it must not stop the others."""
    plain = {"metadata": {"name": "plain"}, "status": {"allocatable": {"cpu": "4"}}}
    odd = {"metadata": {"name": "odd", "labels": ["x"]}}

    assert ("plain", None) == view_node(plain, Units(), Interner())
    assert ("plain", None) == view_node(plain, Units(), Interner(), labelled=True)
    assert ("odd", None) == view_node(odd, Units(), Interner())


def test_a_node_with_the_label_alone_is_kept_where_others_may_publish_its_cards() -> None:
    """It has no cards of its own."""
    item = {"metadata": {"name": "a", "labels": {names.GPU_PRESENT: "true"}}}
    _, without = view_node(item, Units(), Interner())
    _, found = view_node(item, Units(), Interner(), labelled=True)

    assert without is None
    assert found is not None
    assert ("a", (), frozenset()) == (found.name, found.cards, found.resources)
