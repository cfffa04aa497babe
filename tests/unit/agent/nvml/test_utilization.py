"""Where an answer about work begins, and which of a driver's entries count."""

import pytest
from pynvml import c_nvmlProcessUtilizationSample_t as Entry

from agent.nvml.utilization import Mark, Samples, mark_to_go_on_from, read_samples, shares

DATE = 1_700_000_000_000_000
MARK = Mark(1000.0, DATE, DATE / 1e6 - 1000.0)


def entry(pid: int, date: int = DATE + 5, **use: int) -> Entry:
    return Entry(pid=pid, timeStamp=date, **use)


@pytest.mark.parametrize(
    ("seconds", "begins_anew"), [(5.0, False), (5.9, False), (-3600.0, True), (3600.0, True)]
)
def test_a_clock_that_was_set_begins_anew(seconds: float, *, begins_anew: bool) -> None:
    """
    Where the clock that dates samples moved otherwise than ours, nothing before now is covered.
    """
    mark = mark_to_go_on_from(MARK, 1005.0, DATE + int(seconds * 1e6))

    assert begins_anew is (mark.until == 1005.0)


def test_what_was_seen_is_not_news() -> None:
    """An entry that is no newer than the newest one seen names no worker."""
    found = read_samples([entry(7, DATE, smUtil=50), entry(8, smUtil=50)], DATE, DATE + 9)

    assert Samples({8: 50}, DATE + 5, garbled=False) == found


@pytest.mark.parametrize("use", ["smUtil", "memUtil", "encUtil", "decUtil"])
def test_any_use_is_work(use: str) -> None:
    """One percent of any engine makes a worker; an entry without any use does not."""
    found = read_samples([entry(7, **{use: 1}), entry(8)], DATE, DATE + 9)

    assert {7: 1} == found.workers


@pytest.mark.parametrize(
    "odd", [entry(7, smUtil=101), entry(0, smUtil=1), entry(7, DATE + 10, smUtil=1)]
)
def test_what_cannot_be_is_garbled(odd: Entry) -> None:
    """
    A share beyond 100 %, an entry of nobody and one from the future spoil the answer, and no later
    question begins after them.
    """
    found = read_samples([odd], DATE, DATE + 9)

    assert (DATE, True) == (found.newest, found.garbled)


@pytest.mark.parametrize(
    ("averaged", "covered", "expected"),
    [
        (5.0, 5.0, 0.2),
        (20.0, 5.0, 0.8),
        (60.0, 5.0, 1.0),
        (4.9, 5.0, 0.2),
        (5.0, 0.0, 0.2),
    ],
)
def test_an_average_over_more_is_a_larger_share_of_less(
    averaged: float, covered: float, expected: float
) -> None:
    """
    What a driver averages since the newest sample was done in the time of the answer, all of it.
    """
    assert {7: expected} == shares({7: 20}, averaged, covered)
