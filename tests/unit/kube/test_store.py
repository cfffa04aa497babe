"""What is known of a collection."""

import threading
from collections.abc import Callable

from kube.informers import Store


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
    store.replace([("a", 1), ("b", None), ("c", 3)])
    store.apply("MODIFIED", ("a", None))
    store.apply("ADDED", ("d", None))

    assert {"c": 3} == store.items
    assert store.get("b") is None
    assert 2 == store.changes


def test_a_store_is_known_once_it_was_read() -> None:
    """An empty collection is another thing than one of which nothing is known."""
    store: Store[int] = Store()
    before = store.known
    store.replace([])

    assert (False, True) == (before, store.known)


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
