"""Amounts, times and names as people read them."""

import pytest

from gpufence.quantity import GIB, MIB
from gpufence.text import (
    aligned,
    coarse,
    duration,
    limit_mebibytes,
    mebibytes,
    minutes,
    printable,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a?[31mb"),
        ("a\nb", "a?b"),
        ("\u202egpj", "?gpj"),
        ("\ud800", "?"),
        ("ü", "ü"),
    ],
)
def test_names_cannot_steer_a_terminal(text: str, shown: str) -> None:
    """Control characters, line ends and marks that turn text around are question marks."""
    assert shown == printable(text)


def test_long_texts_are_cut() -> None:
    """Of a long text the beginning is kept, and a mark says that there was more."""
    assert ["abc", "a?..."] == [printable("abc", 3), printable("a\nbc", 2)]


def test_what_is_over_a_limit_never_reads_as_equal_to_it() -> None:
    """What is held is rounded up and what is allowed down."""
    assert ("3073 MiB", "3072 MiB") == (
        mebibytes(3 * GIB + 1),
        limit_mebibytes(3 * GIB + MIB - 1),
    )


def test_an_unknown_amount_is_no_number() -> None:
    """What nobody can tell is the word that the place has for it."""
    assert ("unknown", "?") == (mebibytes(None), limit_mebibytes(None, unknown="?"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9, "0s"), (12, "12s"), (60, "1m"), (200, "3m20s"), (7500, "2h5m"), (273_700, "3d4h")],
)
def test_times_have_their_two_largest_units(seconds: float, text: str) -> None:
    """A time is as precise as somebody can use."""
    assert text == duration(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.9, "0s"), (59.9, "59s"), (119, "1m"), (7500, "2h"), (273_700, "3d")]
)
def test_a_narrow_column_has_the_largest_unit(seconds: float, text: str) -> None:
    """Where there is little room a time is rounded down to its largest unit."""
    assert text == coarse(seconds)


def test_a_negative_time_is_none() -> None:
    """Clocks that disagree never make a time negative."""
    assert "0s" == duration(-5)


def test_times_in_sentences() -> None:
    """A sentence counts seconds, and from two minutes on minutes."""
    assert ["0 s", "119 s", "2 min 5 s"] == [minutes(item) for item in (-1, 119.9, 125)]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """No line ends with blanks."""
    rows = [("A", "B", "C"), ("one", "1", "x"), ("i", "100", "")]

    assert ["A    B    C", "one  1    x", "i    100"] == aligned(rows)
