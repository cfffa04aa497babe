"""Fractions of another card than a pod's own: too much of it, or too little."""

from typing import Any

import pytest

from agent.fence import PodContext
from agent.model.decision import Outcome
from agent.model.pod import PodOnNode
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.annotations import Headroom
from gpufence.dialects import Units
from gpufence.mode import Mode
from gpufence.plan import ContainerPlan, Done, Plan, Setting, write_plan
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, container_id
from tests.support.agent.world import World
from tests.support.builders import gpushare
from tests.support.builders import pod as raw_pod


def read(raw: dict[str, Any]) -> PodOnNode:
    labels = {names.MODE: "evict"}
    return read_pod_on_node(raw, PodContext(labels, {}, Mode.EVICT, CARDS, Units()))


def fractions_of(card_bytes: int, *, exact: bool = False, **more: Any) -> dict[str, Any]:
    """Build a pod of 3 GiB whose framework may take 2 GiB of a card as large as that."""
    row = Setting("F", "s0", "fraction", Done.SET, None, 3 * GIB, 512 * MIB, card_bytes, 2 * GIB)
    told = ContainerPlan(3 * GIB, 1, Headroom.FACTOR, 2 * GIB, (row,))._replace(**more)
    words = {
        names.INJECTED: names.INJECTED_YES,
        names.PLAN: write_plan(Plan(Mode.EVICT, "gpushare", 3 * GIB, {"main": told})),
        **({names.NODE: "here"} if exact else {}),
    }
    identity = container_id("train-1")
    status = {"containerStatuses": [{"name": "main", "containerID": f"x://{identity}"}]}
    return raw_pod(gpushare(), annotations=words) | {"status": status}


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


def test_too_little_is_said_where_the_pod_runs() -> None:
    """The card that a pod's fractions are of is named once the pod holds memory on its own."""
    world = World()
    world.add(read(fractions_of(288 * GIB)), GIB)
    world.settle_in()
    world.run(2)

    assert [288 * GIB] == [verdict.told_larger_bytes for verdict in world.decision.verdicts]
