"""The hour's line of each card and of each pod."""

from dataclasses import replace
from typing import Any

from gpufence.quantity import GIB
from kubectl_gpufence.verbs.dashboard import history as kept
from kubectl_gpufence.verbs.dashboard.history import (
    HOUR_SECONDS,
    STEP_SECONDS,
    HourHistory,
    shares_of_cards,
    shares_of_pods,
)
from tests.support.plugin import agent, card_row, cluster, pod_row, seen_pod, snapshot, use_row

FULL = {"gpu-1/GPU-0": 500}
UID = pod_row().uid


def values(history: HourHistory, number: int = 0, now: float = 0.0) -> Any:
    return history.since(number, now)["lines"]


def test_points_are_as_long_ago_as_they_are() -> None:
    """What nobody knew is null, and a line of which nothing is known is none."""
    history = HourHistory()
    history.add(1, 100.0, FULL)
    history.add(3, 110.0, {"gpu-1/GPU-0": None, "gpu-1/GPU-1": 7, "gpu-1/GPU-2": None})

    assert {
        "ago": [20.0, 10.0],
        "lines": {"gpu-1/GPU-0": [500, None], "gpu-1/GPU-1": [None, 7]},
    } == history.since(0, 120.0)


def test_no_look_is_taken_twice() -> None:
    """A point is due once the last one is far enough."""
    history = HourHistory()
    first = history.is_due(0.0)
    history.add(1, 100.0, FULL)

    assert [True, False, True] == [first, *(history.is_due(at) for at in (109.0, 110.0))]


def test_who_knows_the_earlier_points_gets_the_later_ones() -> None:
    """An open page is not told again what it has been told."""
    history = HourHistory()
    history.add(1, 100.0, FULL)
    history.add(7, 130.0, {"gpu-1/GPU-0": 250})

    assert {"ago": [0.0], "lines": {"gpu-1/GPU-0": [250]}} == history.since(1, 130.0)
    assert {"ago": [], "lines": {}} == history.since(7, 130.0)


def test_an_hour_is_remembered() -> None:
    """However long somebody watches, and of who is gone for that long nothing."""
    history = HourHistory()
    history.add(0, 0.0, {"gone": 1, **FULL})
    for number in range(1, 1000):
        history.add(number, number * STEP_SECONDS, FULL)
    known = history.since(0, 999 * STEP_SECONDS)
    ago = known["ago"]

    assert isinstance(ago, list)
    assert (HOUR_SECONDS / STEP_SECONDS, HOUR_SECONDS - STEP_SECONDS) == (len(ago), ago[0])
    assert {"gpu-1/GPU-0": [500] * 360} == known["lines"]


def test_those_who_are_gone_make_room(monkeypatch: Any) -> None:
    """There are never more lines than may be kept, and nobody who is there loses his."""
    monkeypatch.setattr(kept, "MOST_LINES", 3)
    history = HourHistory()
    history.add(1, 0.0, {"a": 1, "b": 1})
    history.add(2, 10.0, {"b": 2, "c": 2, "d": 2})
    full = values(history)
    history.add(3, 20.0, {"b": 3, "c": 3, "d": 3, "e": 3})

    assert {"b": [1, 2], "c": [None, 2], "d": [None, 2]} == full
    assert {"b": [1, 2, 3], "c": [None, 2, 3], "d": [None, 2, 3]} == values(history)


def test_a_card_is_known_while_its_sample_is_fresh() -> None:
    """Of an old one nobody knows, of one without a size nothing can be said."""
    fresh = snapshot(cards=(card_row(used_bytes=4 * GIB, total_bytes=16 * GIB),))
    sizeless = snapshot(cards=(card_row(total_bytes=0),))
    shown = [
        shares_of_cards(cluster(agents=(agent(state),)))
        for state in (fresh, fresh._replace(stale_seconds=999.0), sizeless)
    ]

    assert [{"gpu-1/GPU-0": 250}, {"gpu-1/GPU-0": None}, {"gpu-1/GPU-0": None}] == shown


def test_a_pod_is_measured_by_its_limit_or_by_its_card() -> None:
    """More than the limit is more than a thousand; what is old or cannot be read is unknown."""
    over = use_row(3 * GIB, limit_bytes=2 * GIB)
    without = use_row(4 * GIB, limit_bytes=None)
    unread = use_row(None)
    cards = (card_row(total_bytes=16 * GIB),)

    def shares(use: Any, **state: Any) -> dict[str, int | None]:
        seen = snapshot(pod_row(use), cards=cards)._replace(**state)
        return shares_of_pods(replace(cluster(agents=(agent(seen),)), pods=()), "")

    line = f"{UID}/0"
    assert {line: 1500} == shares(over)
    assert {line: 250} == shares(without)
    assert {line: None} == shares(unread)
    assert {line: None} == shares(over, stale_seconds=999.0)


def test_a_pod_that_holds_nothing_has_no_line() -> None:
    """Neither has one of which no agent tells."""
    idle = snapshot(pod_row()._replace(uses=()))
    agents = (agent(idle),)

    assert {} == shares_of_pods(cluster(agents=agents), "")
    assert {} == shares_of_pods(replace(cluster(agents=()), pods=(seen_pod(),)), "")


def test_a_pod_without_limit_on_an_unknown_card_has_no_height() -> None:
    """Nobody can say of what it is a share."""
    use = use_row(GIB, limit_bytes=None, card="GPU-9")
    seen = cluster(agents=(agent(snapshot(pod_row(use))),))

    assert {f"{UID}/?": None} == shares_of_pods(replace(seen, pods=()), "")
