"""What is remembered of a collection."""

from collections.abc import Callable

from kube import Cache


def test_changes_are_reported_once() -> None:
    """A cache reports what is new, the first list included, and nothing else."""
    sizes: list[int] = []
    cache: Cache[int] = Cache(lambda: sizes.append(len(cache.items)))
    steps: list[Callable[[], None]] = [
        lambda: cache.replace([]),
        lambda: cache.replace([]),
        lambda: cache.replace([("a", 1), ("b", 2)]),
        lambda: cache.apply("MODIFIED", ("a", 1)),
        lambda: cache.apply("MODIFIED", ("a", 3)),
        lambda: cache.apply("ADDED", ("c", 4)),
        lambda: cache.apply("DELETED", ("c", 4)),
        lambda: cache.apply("DELETED", ("c", 4)),
    ]
    for step in steps:
        step()

    assert [0, 2, 2, 3, 2] == sizes
    assert {"a": 3, "b": 2} == cache.items


def test_what_has_not_changed_stays_the_same_object() -> None:
    """Whoever has read an object knows by its identity that it need not be read again."""
    cache: Cache[list[int]] = Cache()
    cache.replace([("a", [1]), ("b", [2])])
    before = cache.items
    cache.replace([("a", [1]), ("b", [3])])

    assert before is not cache.items
    assert before["a"] is cache.items["a"]
