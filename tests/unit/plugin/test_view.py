"""Amounts and tables as people read them, fitted to where they are shown."""

import pytest

from gpufence.quantity import GIB, MIB
from kubectl_gpufence.view import (
    Bar,
    Cell,
    Display,
    Field,
    Tone,
    allowed,
    coloured,
    counted,
    exact,
    held,
    percent,
    share_tone,
    shortened,
    table,
    wrapped,
)

NAME: Field[list[str]] = Field(title="NAME", cell=lambda row: row[0], shrinks=True)
USED: Field[list[str]] = Field(title="USED", cell=lambda row: row[1], right=True)
REST: Field[list[str]] = Field(title="REST", cell=lambda row: Cell(row[2], Tone.BAD))


def test_what_is_over_a_limit_never_reads_as_equal_to_it() -> None:
    """Uses are rounded up and limits down, shares too."""
    assert ("3073Mi", "3072Mi") == (held(3 * GIB + 1), allowed(3 * GIB + MIB - 1))
    assert "101%" == percent(3 * GIB + 1, 3 * GIB)


def test_unknown_is_not_zero() -> None:
    """What nobody knows is a question mark, what does not apply a dash."""
    assert ("?", "-", "?", "-") == (held(None), allowed(None), percent(None, 1), percent(1, None))
    assert None is exact(None)


def test_amounts_for_programs_are_exact() -> None:
    """A program reads back the very number of bytes."""
    assert ("3072Mi", "3221225473") == (exact(3 * GIB), exact(3 * GIB + 1))


def test_nouns_follow_their_number() -> None:
    """One pod, two pods, two processes."""
    assert ["1 pod", "2 pods", "2 processes"] == [
        counted(1, "pod"),
        counted(2, "pod"),
        counted(2, "process", "processes"),
    ]


def test_numbers_stand_right_and_names_left() -> None:
    """Columns are as wide as their widest cell, and no line ends with blanks."""
    rows = [["a", "10Mi", ""], ["long", "5Mi", "x"]]

    assert ["NAME  USED  REST", "a     10Mi", "long   5Mi  x"] == table(
        [NAME, USED, REST], rows, Display()
    )


def test_only_names_that_may_lose_their_middle_do() -> None:
    """What tells pods apart, beginning and end, stays; nothing else is cut."""
    line = table([NAME, USED], [["a" * 30 + "-end", "t" * 20]], Display(width=40))[1]

    assert 40 == len(line)
    assert line.endswith(f"a-end  {'t' * 20}")


def test_a_table_that_cannot_shrink_stays_whole() -> None:
    """Below its least width a table is too wide rather than without content."""
    assert 12 == len(table([NAME], [["a" * 40]], Display(width=5))[1])


def test_names_cannot_steer_a_terminal() -> None:
    """Control characters in cells and sentences are question marks."""
    assert "a?[31mb" == table([NAME], [["a\x1b[31mb"]], Display())[1]
    assert ["  a?[31mb"] == wrapped("a\x1b[31mb", "  ", Display())


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [(0, 10, "...... 0%"), (1, 10, "#..... 10%"), (10, 10, "###### 100%"), (99, 10, "###### 990%")],
)
def test_a_bar_shows_any_use_and_never_overflows(used: int, limit: int, text: str) -> None:
    """A little is one cell, too much is six."""
    assert text == Bar(used, limit).cell(Display(unicode=False)).text


def test_a_bar_of_the_unknown_is_none() -> None:
    """Without use or limit there is nothing to draw."""
    texts = [Bar(*amounts).cell(Display()).text for amounts in ((None, 1), (1, None))]

    assert ["?", "-"] == texts


def test_shares_turn_yellow_before_they_turn_red() -> None:
    """From nine tenths on it is time to look, above the limit it is too late."""
    assert [Tone.GOOD, Tone.WARN, Tone.WARN, Tone.BAD] == [
        share_tone(used, 10) for used in (8, 9, 10, 11)
    ]


def test_colours_are_for_terminals() -> None:
    """Without colours the text is the text."""
    bad = Cell("bad", Tone.BAD)

    assert "bad" == coloured(bad, Display())
    assert "\x1b[31mbad\x1b[0m" == coloured(bad, Display(colour=True))


def test_a_name_keeps_both_ends() -> None:
    """The middle goes, also where the terminal knows ASCII alone."""
    assert "abc…ij" == shortened("abcdefghij", 6, Display())
    assert "ab..ij" == shortened("abcdefghij", 6, Display(unicode=False))
    assert "abc" == shortened("abc", 6, Display())


@pytest.mark.parametrize(
    ("width", "text"), [(99, "50%"), (100, "###... 50%"), (None, "###... 50%")]
)
def test_a_narrow_terminal_has_no_room_for_bars(width: int | None, text: str) -> None:
    """On a terminal of fewer columns than asked for only the percentage is left."""
    display = Display(width=width, unicode=False)

    assert text == Bar(1, 2, least_width=100).cell(display).text
