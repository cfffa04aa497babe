"""Moments and lengths of time on objects."""

import pytest

from gpufence.errors import InvalidError
from gpufence.times import read_length, read_moment, write_moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2027-01-15T08:00:00Z", 1_800_000_000.0),
        ("2027-01-15T10:00:00+02:00", 1_800_000_000.0),
        ("2027-01-15T08:00:00.250Z", 1_800_000_000.25),
        ("2027-01-15T08:00:00.123456789Z", 1_800_000_000.123456),
    ],
)
def test_a_moment_is_read(text: str, moment: float) -> None:
    """RFC 3339 in any zone is seconds since the epoch."""
    assert moment == pytest.approx(read_moment(text, "field"), abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        *("", "tomorrow", "2027", "2027-01-15", "2027-01-15T08:00:00", "2027-02-30T08:00:00Z"),
        *("0000-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01"),
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """
    A moment without a zone, on a day that does not exist, or in no year that can be written in
    UTC, is none.
    """
    with pytest.raises(InvalidError, match="is no moment; write it as RFC 3339, such as 2027"):
        read_moment(text, "field")


def test_a_moment_is_written_in_whole_seconds() -> None:
    """What is written never lies after the moment."""
    assert "2027-01-15T08:00:00Z" == write_moment(1_800_000_000.9)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (1e15, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (-62_135_596_800.0, "0001-01-01T00:00:00Z"),
        (-1e15, "0001-01-01T00:00:00Z"),
    ],
)
def test_any_moment_can_be_written(moment: float, text: str) -> None:
    """What is added to the last of all moments is that moment, and what is written can be read."""
    assert text == write_moment(moment) == write_moment(read_moment(text, "field"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("15m", 900.0), ("1h30m", 5400.0), ("2d", 172800.0), ("1d2h3m4s", 93784.0)],
)
def test_a_length_is_read(text: str, seconds: float) -> None:
    """Days, hours, minutes and seconds add up."""
    assert seconds == read_length(text, "field")


@pytest.mark.parametrize("text", ["", "15", "m", "1m1h", "-5m", "1.5h", "15 m", "9999999999s"])
def test_what_is_no_length_is_refused(text: str) -> None:
    """A number without a unit is no length of time."""
    with pytest.raises(InvalidError, match="is no length of time"):
        read_length(text, "field")


def test_a_length_has_a_floor() -> None:
    """What is shorter than allowed is refused, with the shortest that is."""
    with pytest.raises(InvalidError, match="is too short; write a time of at least 60s"):
        read_length("59s", "field", least=60)


def test_a_length_has_a_ceiling() -> None:
    """Nobody means more than a hundred years, and no calendar has what would follow."""
    assert 3_153_600_000.0 == read_length("36500d", "field")
    with pytest.raises(InvalidError, match="is longer than a hundred years; write a time of"):
        read_length("36500d1s", "field")
