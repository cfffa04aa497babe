"""Pods that hold more, or less, than a fraction, and pods that end."""

from typing import Any

import pytest

from agent.model.decision import Outcome
from agent.model.pod import PodOnNode, pods_on_node
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.mode import Mode
from gpufence.plan import DRIVER_FORM, ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, read, status_of
from tests.support.agent.world import World
from tests.support.builders import gpushare, pod
from tests.support.builders import pod as raw_pod


@pytest.mark.parametrize(
    ("given", "limit", "promise"), [({}, 4, 4), ({names.KAI_GIVEN: "GPU-1"}, 8, 4)]
)
def test_the_limit_is_the_fence_and_the_request_is_the_promise(
    given: dict[str, str], limit: int, promise: int
) -> None:
    """
    Where the driver holds a pod of KAI's it may borrow up to its limit, and others leave its
    request to it.
    """
    said = {names.KAI_REQUEST: "4Gi", names.KAI_LIMIT: "8Gi", **given}
    annotations = {f"{names.KAI_OF_CONTAINER}main{end}": text for end, text in said.items()}
    asking = pod({"name": "main"}, annotations=annotations)
    found = read(asking)
    uuid = CARDS[0].uuid

    assert limit * GIB == found.limit_on(uuid)
    assert promise * GIB == found.promise_on(uuid)
    assert "kai, an amount on each card" == found.measure
    assert not pods_on_node([found]).sharing


def fractions_of(card_bytes: int, *, exact: bool = False, **more: Any) -> dict[str, Any]:
    """Build a pod of 3 GiB whose framework may take 2 GiB of a card as large as that."""
    row = Setting("F", "s0", "fraction", Done.SET, None, 3 * GIB, 512 * MIB, card_bytes, 2 * GIB)
    told = ContainerPlan(3 * GIB, 1, Headroom.FACTOR, 2 * GIB, (row,))._replace(**more)
    words = {
        names.INJECTED: names.INJECTED_YES,
        names.PLAN: write_plan(Plan(Mode.EVICT, "gpushare", 3 * GIB, {"main": told})),
        **({names.NODE: "here"} if exact else {}),
    }
    return raw_pod(gpushare(), annotations=words) | {"status": status_of("train-1")}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(fractions_of(288 * GIB), 288 * GIB, id="of the largest card"),
        pytest.param(fractions_of(288 * GIB, exact=True), None, id="made exact"),
        pytest.param(fractions_of(16 * GIB), None, id="of one hardly larger"),
        pytest.param(fractions_of(5 * GIB), None, id="of a smaller one"),
        pytest.param(fractions_of(288 * GIB, kept=False), None, id="nothing listens"),
        pytest.param(fractions_of(288 * GIB, runs="x", reads=("G",)), None, id="read by nothing"),
        pytest.param(fractions_of(288 * GIB, runs="x", reads=("F",)), 288 * GIB, id="read"),
        pytest.param(raw_pod(gpushare()), None, id="told nothing"),
    ],
)
def test_who_was_told_too_little(raw: dict[str, Any], expected: int | None) -> None:
    """A pod whose fractions are of a card much larger than its own has less than its limit."""
    found = read(raw).told_larger.get(CARDS[0].uuid)

    assert expected == found


@pytest.mark.parametrize(("exact", "used"), [(False, 5 * GIB), (True, 5 * GIB), (False, 9 * GIB)])
def test_who_keeps_to_a_fraction_of_another_card(
    exact: bool,  # noqa: FBT001 - one column of a table
    used: int,
) -> None:
    """
    A pod that was told a fraction of a smaller card goes for shortages only while it keeps to that.
    """
    raw = fractions_of(5 * GIB, exact=exact)
    world = World()
    world.add(read(raw), GIB)
    world.settle_in()
    world.hold("train-1", used)
    gone = [act.pod for act in world.run(60)]

    stays = not exact and used < 6 * GIB
    assert ([] if stays else ["train-1"]) == gone
    assert not stays or world.outcome("train-1") is Outcome.OTHER_CARD


def test_fractions_of_what_the_driver_shows_are_of_no_other_card() -> None:
    """Where the driver holds a pod, its limit is what it takes for the card: it is not spared."""
    held = Setting(names.DRIVER_LIMIT, "", DRIVER_FORM, Done.SET, None, 3 * GIB)
    share = Setting("F", "s0", "fraction", Done.SET, None, 3 * GIB, 512 * MIB, 3 * GIB, 2 * GIB)

    assert {} == read(fractions_of(3 * GIB, settings=(held, share))).told_elsewhere
    assert {} != read(fractions_of(3 * GIB, settings=(share,))).told_elsewhere


def test_too_little_is_said_where_the_pod_runs() -> None:
    """The card that a pod's fractions are of is named once the pod holds memory on its own."""
    world = World()
    world.add(read(fractions_of(288 * GIB)), GIB)
    world.settle_in()
    world.run(2)

    assert [288 * GIB] == [verdict.told_larger_bytes for verdict in world.decision.verdicts]


MADE = "2026-11-18T01:02:03Z"


def ended_pod(**status: Any) -> PodOnNode:
    """Read a pod of three processes with such a status."""
    raw = pod(gpushare(), annotations={names.PROCESSES_PER_CARD: "3"})
    raw["metadata"]["creationTimestamp"] = MADE
    raw["status"] = status
    return read(raw, labels={}, cards=())


def ended(day: str, message: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, "message": message, "finishedAt": f"{day}T01:02:03Z"}}


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

    assert {"a": "2026-11-18", "b": "2026-11-19"} == ended_pod(**{key: statuses}).out_of_memory


def test_how_many_share_a_part_and_since_when() -> None:
    """The pod's own word says how many processes share a part, the API server when it was made."""
    assert (3, MADE) == (ended_pod().shares, ended_pod().created)
