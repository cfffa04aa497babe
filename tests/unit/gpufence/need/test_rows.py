"""
Whose need it is.
"""

import pytest

from gpufence.need import top_owner

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
