"""The model of a queue, and what it shows of the rules."""

import pytest

from tests.keda.model import (
    LOADS,
    Rule,
    Settings,
    arrivals,
    least_fixed,
    percentile,
    recommended,
    run,
    waits_of,
)
from tests.keda.picture import PICTURE, drawn, settings


@pytest.mark.parametrize(
    ("now", "averages", "wanted"),
    [
        (1, [(10.0, 5.0)], 2),
        (4, [(19.0, 5.0)], 4),
        (4, [(23.0, 5.0)], 5),
        (10, [(0.0, 5.0), (8.0, 0.8)], 10),
        (10, [(0.0, 5.0), (4.0, 0.8)], 5),
    ],
)
def test_the_larger_wish_counts(now: int, averages: list[tuple[float, float]], wanted: int) -> None:
    """Totals are divided by targets, a tenth is no difference, and the most is wanted."""
    assert wanted == recommended(now, averages)


def test_messages_wait_for_a_free_worker() -> None:
    """Of three messages at once two workers take the third when the first is done."""
    assert [0.0, 0.0, 2.0, 1.0] == waits_of([0.0, 0.0, 0.0, 1.0], 2.0, 2)


def test_the_least_that_holds_a_target_is_found() -> None:
    """Two messages at once, again and again, need two workers where nobody shall wait."""
    times = [float(second) for second in range(0, 100, 5) for _ in range(2)]

    assert (2, 1) == (least_fixed(times, 2.0, 1.0), least_fixed(times, 2.0, 2.0))


def test_a_percentile_is_a_value_that_is_there() -> None:
    """Of a hundred values the ninety-ninth is not exceeded by 99 of them."""
    assert (99, 7) == (percentile(range(1, 101), 0.99), percentile([7], 0.5))


def test_arrivals_come_as_often_as_said() -> None:
    """At random, and on average as the rate has it, the same for the same seed."""
    chosen = settings(Rule.BUSY)
    times = arrivals(chosen)

    assert times == arrivals(chosen)
    assert 0.97 < len(times) / (20 * 3600) < 1.03


def test_backlog_alone_oscillates() -> None:
    """At a steady load the pool is taken away, again and again, and messages wait."""
    made = run(settings(Rule.BACKLOG))

    assert {1} < {one.replicas for one in made.moments if one.at > 600}
    assert made.mean_replicas > 4 * made.least
    assert made.over_target > 0.1


def test_counting_whoever_did_anything_runs_away() -> None:
    """Where a worker counts as busy for all of a time in which it did anything, nothing stops."""
    assert 100 == run(settings(Rule.TOUCHED)).most_replicas


def test_both_triggers_settle() -> None:
    """Backlog and the workers' share of work need a fifth more than the load, and nothing waits."""
    made = run(settings(Rule.BUSY))

    assert made.mean_replicas <= 1.2 * made.least
    assert made.over_target < 0.01


@pytest.mark.parametrize("load", LOADS)
def test_no_load_makes_both_triggers_worse(load: str) -> None:
    """For each load of the real programs the model has fewer replicas and shorter waits."""
    chosen = {"rate": LOADS[load], "message": 2.0, "most": 24, "utilization": 0.85}
    ours = run(Settings(rule=Rule.BUSY, window=120.0, **chosen))  # type: ignore[arg-type]  # mixed
    other = run(Settings(rule=Rule.BACKLOG, **chosen))  # type: ignore[arg-type]  # the same

    assert ours.mean_replicas < other.mean_replicas
    assert ours.over_target < other.over_target


def test_the_picture_is_drawn_by_the_program() -> None:
    """What the page shows is what the model says today."""
    assert drawn() == PICTURE.read_text(encoding="utf-8")
