"""
Amounts, times and names as people read them.
"""

from __future__ import annotations

from gpufence.quantity import GIB, MIB
from kubectl_gpufence.words import allowed, counted, exact, held, percent, total


def test_what_is_over_a_limit_never_reads_as_equal_to_it() -> None:
    """
    Uses are rounded up and limits down, shares too.
    """
    assert ("3073Mi", "3072Mi") == (held(3 * GIB + 1), allowed(3 * GIB + MIB - 1))
    assert "101%" == percent(3 * GIB + 1, 3 * GIB)


def test_unknown_is_not_zero() -> None:
    """
    What nobody knows is a question mark, what does not apply a dash.
    """
    assert ("?", "-", "?", "-") == (held(None), allowed(None), percent(None, 1), percent(1, None))
    assert None is exact(None)
    assert None is total([1, None])
    assert 3 == total([1, 2])


def test_amounts_for_programs_are_exact() -> None:
    """
    A program reads back the very number of bytes.
    """
    assert ("3072Mi", "3221225473") == (exact(3 * GIB), exact(3 * GIB + 1))


def test_nouns_follow_their_number() -> None:
    """
    One pod, two pods, two processes.
    """
    assert ["1 pod", "2 pods", "2 processes"] == [
        counted(1, "pod"),
        counted(2, "pod"),
        counted(2, "process", "processes"),
    ]
