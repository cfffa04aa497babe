"""How much of the last minute a pod was at work."""

import pytest

from agent.concerns.activity.model import Span
from agent.concerns.activity.pods import covered
from tests.support.agent.watching import Watched


@pytest.fixture
def card() -> Watched:
    """A card with a pod that has done nothing for a while beside one that holds no memory."""
    made = Watched()
    made.add("a", 1)
    made.claim("claims")
    made.settle()
    return made


def test_the_busy_share_is_that_of_a_minute(card: Watched) -> None:
    """Three answers with work in a minute are a quarter of it, wherever they lie."""
    card.settle(12)
    for workers in ([1], (), [1], (), [1]):
        card.pass_(workers)

    assert (0.25, 0.0) == (card.whole("a").busy_share, card.whole("claims").busy_share)


def test_the_busy_share_ends_a_minute_later(card: Watched) -> None:
    """What is older than a minute is forgotten."""
    card.settle(12)
    card.pass_([1])
    card.settle(12)

    assert (0.0, ()) == (card.whole("a").busy_share, card.whole("a").used)


def test_the_busy_share_of_a_young_pod_is_that_of_its_time() -> None:
    """What was not watched does not count: who worked ever since is busy all the time."""
    card = Watched()
    card.add("a", 1)
    shares = []
    for workers in ([1], [1], (), [1]):
        card.pass_(workers)
        shares.append(card.whole("a").busy_share)

    assert [1.0, 1.0, 0.5, 2 / 3] == shares


def test_a_hole_is_not_counted_as_rest(card: Watched) -> None:
    """After a hole the share is that of the time since."""
    card.settle(12)
    card.pass_([1], hole=True)
    card.pass_([1])

    assert 1.0 == card.whole("a").busy_share


def test_who_works_half_of_the_time_is_half_busy(card: Watched) -> None:
    """Of a time in which a pod worked, the share counts that the driver gives it."""
    card.settle(12)
    for _ in range(12):
        card.pass_({1: 0.5})

    assert 0.5 == card.whole("a").busy_share


def test_what_the_cpu_does_counts_as_well(card: Watched) -> None:
    """
    A message is read and answered by the CPU: its time is added to that of the card, up to all.
    """
    card.settle(12)
    for _ in range(12):
        card.cpu[1] = card.cpu.get(1, 0.0) + 1.0
        card.pass_({1: 0.5})

    assert 0.7 == pytest.approx(card.whole("a").busy_share)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0.0),
        ([Span(0, 10, "a")], 1.0),
        ([Span(-5, 5, "a"), Span(5, 6, "a")], 0.6),
        ([Span(9, 99, "a"), Span(1, 2, "a")], 0.2),
        ([Span(1, 9, "a"), Span(2, 3, "b")], 0.8),
        ([Span(0, 10, "a", 0.25), Span(0, 4, "b", 0.5)], 0.25),
    ],
)
def test_spans_cover_a_part_of_a_time(spans: list[Span], expected: float) -> None:
    """The card that was used most counts, and what lies outside not at all."""
    assert expected == covered(spans, 0, 10)
