"""What is sent to the API server."""

import re

import pytest

from agent.cluster.acts import deletion, eviction
from agent.cluster.settings import COMPONENT
from gpufence import names
from tests.support.agent.builders import pod


@pytest.mark.parametrize(("own", "expected"), [(1000, 30), (7, 7), (0, 1), (-1, 1)])
def test_grace(own: int, expected: int) -> None:
    """A pod gets the grace it asks for, at most ours and at least a second."""
    options = eviction(pod(grace_seconds=own), 30)["deleteOptions"]

    assert expected == options["gracePeriodSeconds"]
    assert options == {
        key: value
        for key, value in deletion(pod(grace_seconds=own), 30).items()
        if key not in {"apiVersion", "kind"}
    }


def test_nobody_else_is_meant() -> None:
    """Evictions and deletions name the pod's UID."""
    said = str(eviction(pod("a"), 30)) + str(deletion(pod("a"), 30))

    assert 2 == len(re.findall(r"'preconditions': {'uid': 'uid-a'}", said))


def test_who_asks_for_an_eviction_and_why() -> None:
    """Admission hooks and audit logs can tell who asked for an eviction, and for what reason."""
    expected = {"reason": names.EVICTED, "requested-by": COMPONENT}

    assert expected == eviction(pod("a"), 30)["metadata"]["annotations"]
