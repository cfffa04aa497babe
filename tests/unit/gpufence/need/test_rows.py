"""Whose need it is."""

import pytest

from gpufence.need import NeedKey, top_owner, with_room

HASH = {"pod-template-hash": "6664c96cd5"}


@pytest.mark.parametrize(
    ("kind", "name", "labels", "expected"),
    [
        ("ReplicaSet", "web-6664c96cd5", HASH, ("Deployment", "web")),
        ("ReplicaSet", "web-6664c96cd5", {}, ("ReplicaSet", "web-6664c96cd5")),
        ("ReplicaSet", "web", HASH, ("ReplicaSet", "web")),
        ("ReplicaSet", "-6664c96cd5", HASH, ("ReplicaSet", "-6664c96cd5")),
        ("Job", "nightly-29412345", {}, ("CronJob", "nightly")),
        ("Job", "train-20261119", {}, ("Job", "train-20261119")),
        ("Job", "train-v2", {}, ("Job", "train-v2")),
        ("StatefulSet", "db-29412345", {}, ("StatefulSet", "db-29412345")),
    ],
    ids=["rolled", "no hash", "bare", "nameless", "scheduled", "date", "version", "other"],
)
def test_the_owner_is_the_topmost_that_is_certain(
    kind: str, name: str, labels: dict[str, str], expected: tuple[str, str]
) -> None:
    """
    A name that changes with each roll-out or run is traced back where its form leaves no doubt.
    """
    assert expected == top_owner(kind, name, labels)


def crowd(**counts: int) -> list[NeedKey]:
    return [
        NeedKey(namespace, "Job", f"{number}", "main", "T4")
        for namespace, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("counts", "most", "expected"),
    [
        ({"a": 3, "b": 2}, 5, {"a": 3, "b": 2}),
        ({"few": 2, "many": 90}, 10, {"few": 2, "many": 8}),
        ({"a": 7, "b": 90, "c": 90}, 12, {"a": 4, "b": 4, "c": 4}),
        ({"a": 5, "b": 5}, 7, {"a": 3, "b": 4}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"b": 1, "c": 1}),
        ({"a": 1}, 0, {}),
    ],
    ids=["room", "crowd", "two crowds", "odd", "no share", "none"],
)
def test_a_crowd_takes_nobodys_place(
    counts: dict[str, int], most: int, expected: dict[str, int]
) -> None:
    """Each namespace has an equal share of the room or all it needs, and of each the last stay."""
    kept = with_room(crowd(**counts), most)

    assert expected == {
        name: sum(key.namespace == name for key in kept) for name in sorted({k[0] for k in kept})
    }
    assert {f"{count - 1}" for name, count in counts.items() if name in expected} <= {
        key.name for key in kept
    }
