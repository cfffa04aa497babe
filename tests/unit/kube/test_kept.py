"""What is kept of a cluster's objects, and shared among equal ones."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gpufence import names
from gpufence.dialects import Units
from kube.informers import Store
from kube.informers.views import (
    MOST_CHARACTERS,
    UNREADABLE,
    Interner,
    NamespaceView,
    SharedTexts,
    digest,
    view_namespace,
    view_node,
    view_policy,
)


def test_changes_are_reported_once() -> None:
    """A store reports what is new, the first list included, and nothing else."""
    sizes: list[int] = []
    store: Store[int] = Store(lambda: sizes.append(len(store)))
    steps: list[Callable[[], None]] = [
        lambda: store.replace([]),
        lambda: store.replace([]),
        lambda: store.replace([("a", 1), ("b", 2)]),
        lambda: store.apply("MODIFIED", ("a", 1)),
        lambda: store.apply("MODIFIED", ("a", 3)),
        lambda: store.apply("ADDED", ("c", 4)),
        lambda: store.apply("DELETED", ("c", 4)),
        lambda: store.apply("DELETED", ("c", 4)),
    ]
    for step in steps:
        step()

    assert [0, 2, 2, 3, 2] == sizes
    assert len(sizes) == store.changes
    assert {"a": 3, "b": 2} == store.items


def test_what_was_handed_out_never_changes() -> None:
    """All that is known is the same mapping until a change, and another one after it."""
    store: Store[int] = Store()
    store.replace([("a", 1)])
    before = store.items
    same = store.items
    store.apply("ADDED", ("b", 2))
    store.apply("DELETED", ("a", 1))

    assert before is same
    assert {"a": 1} == before
    assert {"b": 2} == store.items


def test_what_has_not_changed_stays_the_same_object() -> None:
    """It is known by its identity that an object need not be read again."""
    store: Store[list[int]] = Store()
    store.replace([("a", [1]), ("b", [2])])
    before = store.items
    store.replace([("a", [1]), ("b", [3])])

    assert before is not store.items
    assert before["a"] is store.items["a"] is store.get("a")


def test_an_object_of_no_concern_is_not_held() -> None:
    """A projection that returns None takes an object out as a deletion does."""
    store: Store[int] = Store()
    before = store.known
    store.replace([("a", 1), ("b", None), ("c", 3)])
    store.apply("MODIFIED", ("a", None))
    store.apply("ADDED", ("d", None))

    assert (False, True) == (before, store.known)
    assert {"c": 3} == store.items
    assert store.get("b") is None
    assert 2 == store.changes


def test_readers_see_whole_collections_while_it_changes() -> None:
    """However reads and changes fall together, a reader sees a state that there was."""
    store: Store[int] = Store()
    store.replace([("first", 0), ("second", 0)])
    over = threading.Event()
    odd: list[object] = []

    def read() -> None:
        while not over.is_set():
            seen = dict(store.items)
            if not 0 <= seen["first"] - seen["second"] <= 1:
                odd.append(seen)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 2000):
        store.apply("MODIFIED", ("first", number))
        store.apply("MODIFIED", ("second", number))
    over.set()
    for thread in threads:
        thread.join()

    assert [] == odd


def node(name: str, **labels: str) -> dict[str, Any]:
    said = {"nvidia.com/gpu.memory": "15360", "kubernetes.io/hostname": name, **labels}
    return {
        "metadata": {"name": name, "labels": said},
        "status": {"allocatable": {"nvidia.com/gpu": "1"}},
    }


def namespace(**labels: str) -> dict[str, Any]:
    annotations = {"gpufence.io/memory": "2Gi", "other": "text"}
    return {"metadata": {"name": "a", "labels": labels, "annotations": annotations}}


def test_only_our_texts_are_kept() -> None:
    """
    Of a namespace and of the kill switch nothing else, some of it large, is ours to hold; what a
    tenant can make long has a bound.
    """
    item = namespace(**{names.MODE: "cap", "team": "b"})
    long = {"metadata": {"name": "a", "annotations": {names.MEMORY: "x" * (MOST_CHARACTERS + 1)}}}
    policy = {"metadata": {"name": "policy"}, "data": {"maxMode": "cap", "other": "x"}}

    assert ("a", NamespaceView({names.MODE: "cap"}, {names.MEMORY: "2Gi"})) == view_namespace(item)
    assert ("a", NamespaceView({}, {names.MEMORY: UNREADABLE})) == view_namespace(long)
    assert ("policy", {"maxMode": "cap"}) == view_policy(policy, ("maxMode", "absent"))


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


class One(NamedTuple):
    number: int


class Other(NamedTuple):
    number: int


def test_equal_values_become_the_same() -> None:
    """The first of them is the one that is held; equal tuples of two types stay two."""
    interner = Interner()
    first, second = One(1000), One(1000)

    assert first is interner.value(first) is interner.value(second)
    assert interner.json({"a": [1]}) is interner.json({"a": [1]})
    assert interner.same("a", ["a"]) is interner.same("a", ["a"])
    assert [One, Other] == [type(interner.value(each)) for each in (One(1), Other(1))]
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 2})


def test_what_is_remembered_has_a_bound() -> None:
    """However many different values come, few are held, and the next equal ones are shared."""
    interner = Interner(most=10)
    first = interner.value(One(0))
    later = [interner.value(One(number)) for number in range(1, 99)]

    assert later[-1] is interner.value(One(98))
    assert first is not interner.value(One(0))


def test_texts_read_like_a_dict() -> None:
    """
    Keys, values, absence, length and equality are those of the dict; keys that thousands of nodes
    repeat are held once.
    """
    interner = Interner()
    texts = interner.texts({"b": "2", "a": "1"})
    one, other = (interner.texts({f"{part}-key": name for part in "ab"}) for name in ("n1", "n2"))

    assert {"a": "1", "b": "2"} == dict(texts)
    assert ("2", None, 2) == (texts["b"], texts.get("c"), len(texts))
    assert "SharedTexts({'a': '1', 'b': '2'})" == repr(texts)
    assert texts == Interner().texts({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert texts not in (Interner().texts({"a": "1", "c": "2"}), interner.texts({"a": "2"}))
    assert 1 == len({texts, Interner().texts({"a": "1", "b": "2"})})
    assert isinstance(one, SharedTexts)
    assert next(iter(one)) is next(iter(other))
