"""
Tables that fit where they are shown.
"""

from __future__ import annotations

import pytest

from kubectl_gpufence.table import Cell, Column, Look, Tone, bar, coloured, shortened, table, tone


def test_numbers_stand_right_and_names_left() -> None:
    """
    Columns are as wide as their widest cell, and no line ends with blanks.
    """
    columns = [Column("NAME"), Column("USED", right=True), Column("REST")]
    rows = [[Cell("a"), Cell("10Mi"), Cell("")], [Cell("long"), Cell("5Mi"), Cell("x")]]

    assert ["NAME  USED  REST", "a     10Mi", "long   5Mi  x"] == table(columns, rows, Look())


def test_only_names_that_may_lose_their_middle_do() -> None:
    """
    What tells pods apart, beginning and end, stays; nothing else is cut.
    """
    columns = [Column("POD", shrinks=True), Column("TEXT")]
    rows = [[Cell("a" * 30 + "-end"), Cell("t" * 20)]]

    assert 40 == len(table(columns, rows, Look(width=40))[1])
    assert table(columns, rows, Look(width=40))[1].endswith(f"a-end  {'t' * 20}")


def test_a_table_that_cannot_shrink_stays_whole() -> None:
    """
    Below its least width a table is too wide rather than without content.
    """
    rows = [[Cell("a" * 40)]]

    assert 12 == len(table([Column("POD", shrinks=True)], rows, Look(width=5))[1])


@pytest.mark.parametrize(
    ("used", "limit", "text"),
    [(0, 10, "...... 0%"), (1, 10, "#..... 10%"), (10, 10, "###### 100%"), (99, 10, "###### 990%")],
)
def test_a_bar_shows_any_use_and_never_overflows(used: int, limit: int, text: str) -> None:
    """
    A little is one cell, too much is six.
    """
    assert text == bar(used, limit, Look(unicode=False)).text


def test_a_bar_of_the_unknown_is_none() -> None:
    """
    Without use or limit there is nothing to draw.
    """
    assert ("?", "-") == (bar(None, 1, Look()).text, bar(1, None, Look()).text)


def test_shares_turn_yellow_before_they_turn_red() -> None:
    """
    From nine tenths on it is time to look, above the limit it is too late.
    """
    assert [Tone.GOOD, Tone.WARN, Tone.WARN, Tone.BAD] == [tone(n, 10) for n in (8, 9, 10, 11)]


def test_colours_are_for_terminals() -> None:
    """
    Without colours the text is the text.
    """
    assert "bad" == coloured("bad", Tone.BAD, Look())
    assert "\x1b[31mbad\x1b[0m" == coloured("bad", Tone.BAD, Look(colour=True))


def test_a_name_keeps_both_ends() -> None:
    """
    The middle goes, also where the terminal knows ASCII alone.
    """
    assert "abc…ij" == shortened("abcdefghij", 6, Look())
    assert "ab..ij" == shortened("abcdefghij", 6, Look(unicode=False))
    assert "abc" == shortened("abc", 6, Look())
