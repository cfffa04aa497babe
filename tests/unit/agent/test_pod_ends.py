"""What a pod's status and words say of how its containers ended, and of who shares what."""

from typing import Any

import pytest

from agent.fence import PodContext
from agent.model.pod import PodOnNode
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.dialects import Units
from gpufence.mode import Mode
from tests.support.builders import gpushare, pod

MADE = "2026-11-18T01:02:03Z"


def read(**status: Any) -> PodOnNode:
    """Read a pod of three processes with such a status."""
    raw = pod(gpushare(), annotations={names.PROCESSES_PER_CARD: "3"})
    raw["metadata"]["creationTimestamp"] = MADE
    raw["status"] = status
    return read_pod_on_node(raw, PodContext({}, {}, Mode.EVICT, (), Units()))


def ended(day: str, message: str) -> dict[str, Any]:
    return {"terminated": {"message": message, "finishedAt": f"{day}T01:02:03Z"}}


@pytest.mark.parametrize("key", ["containerStatuses", "initContainerStatuses"])
def test_whose_card_was_too_small(key: str) -> None:
    """
    A container that ended for want of its card's memory has the day of it, the latest one; what
    else containers end with is nothing.
    """
    full = "RuntimeError: CUDA out of memory."
    statuses = [
        {"name": "a", "lastState": ended("2026-11-18", full), "state": {"running": {}}},
        {"name": "b", "lastState": ended("2026-11-18", full), "state": ended("2026-11-19", full)},
        {"name": "c", "lastState": ended("2026-11-18", "Error"), "state": {"waiting": {}}},
        {"name": "d"},
    ]

    assert {"a": "2026-11-18", "b": "2026-11-19"} == (read(**{key: statuses}).out_of_memory)


def test_how_many_share_a_part_and_since_when() -> None:
    """The pod's own word says how many processes share a part, the API server when it was made."""
    assert (3, MADE) == (read().shares, read().created)
