"""Lines come out whole, however the bytes came in."""

import pytest

from kube.watch import LineCutter, LineTooLongError


def test_blank_lines_are_left_out() -> None:
    """Keep-alive blanks between lines mean nothing."""
    assert [b"a", b"b"] == LineCutter(10).feed(b"\n\na\n \r\nb\n")


def test_the_rest_is_what_has_no_end() -> None:
    """A line that was begun is kept apart."""
    cutter = LineCutter(10)
    cutter.feed(b"a\nbc")

    assert b"bc" == cutter.rest


@pytest.mark.parametrize("data", [b"12345678901", b"12345678901\n", b"1\n12345678901\n2\n"])
def test_a_line_beyond_the_limit_is_refused(data: bytes) -> None:
    """The limit holds for whole lines and for begun ones."""
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        LineCutter(10).feed(data)


def test_a_line_of_the_limit_passes() -> None:
    """The limit itself is allowed."""
    assert [b"1234567890"] == LineCutter(10).feed(b"1234567890\n")
