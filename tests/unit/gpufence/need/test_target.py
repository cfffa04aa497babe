"""From what was measured to a limit under which it fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.need import MostHeld, limit_for
from gpufence.need.target import LimitTarget, TargetTerms, target_for
from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance

RESERVE = 512 * MIB
HELD = MostHeld(4 * GIB)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (MostHeld(0), 640),
        (MostHeld(1 * GIB), 1600),
        (HELD, 6528),
        (MostHeld(4 * GIB, processes=2, shares=2), 6336),
        (MostHeld(4 * GIB, processes=2, process_bytes=2 * GIB, shares=2), 6336),
        (MostHeld(4 * GIB, processes=2, process_bytes=3 * GIB, shares=2), 9728),
        (MostHeld(4 * GIB, processes=2, process_bytes=3 * GIB), 4864),
        (MostHeld(4 * GIB, processes=2, process_bytes=1), 4736),
        (MostHeld(4 * GIB, processes=0, shares=0), 6528),
    ],
    ids=[
        *("nothing", "small", "one", "alike", "alike, told", "unlike", "unlike, not shared"),
        *("tiny", "none"),
    ],
)
def test_a_limit_is_the_share_rule_backwards(most: MostHeld, expected: int) -> None:
    """
    Of what a process held all but a quarter of its reserve may be tensors; these and the margin are
    seven tenths of the limit, and the limit less the contexts.
    """
    assert expected * MIB == limit_for(most, RESERVE)


def test_a_margin_can_be_chosen() -> None:
    """Without a margin the limit is for what was measured alone."""
    assert 5696 * MIB == limit_for(HELD, RESERVE, 0)


@pytest.mark.parametrize(
    ("too_small", "terms", "expected"),
    [
        (0, TargetTerms(RESERVE), LimitTarget(6528 * MIB, 6528 * MIB)),
        (5 * GIB, TargetTerms(RESERVE), LimitTarget(6528 * MIB, 6528 * MIB)),
        (6 * GIB, TargetTerms(RESERVE), LimitTarget(7680 * MIB, 6528 * MIB, 6 * GIB)),
        (
            6 * GIB,
            TargetTerms(RESERVE, card_bytes=7 * GIB, most_bytes=20 * GIB),
            LimitTarget(7 * GIB, 6528 * MIB, 6 * GIB, 7 * GIB),
        ),
        (
            0,
            TargetTerms(RESERVE, most_bytes=5 * GIB),
            LimitTarget(5 * GIB, 6528 * MIB, None, 5 * GIB),
        ),
        (0, TargetTerms(RESERVE, card_bytes=15 * GIB), LimitTarget(6528 * MIB, 6528 * MIB)),
    ],
    ids=["measured", "raised enough", "raised", "card", "ceiling", "fits"],
)
def test_a_limit_that_was_too_small_is_left_by_a_quarter(
    too_small: int, terms: TargetTerms, expected: LimitTarget
) -> None:
    """The larger of both counts, within the card and what is allowed."""
    assert expected == target_for([HELD], too_small, terms)


def test_a_raise_does_not_feed_itself() -> None:
    """The target that came of a raise is not raised again while it holds."""
    terms = TargetTerms(RESERVE)
    first = target_for([HELD], 6 * GIB, terms)

    assert first == target_for([HELD], 6 * GIB, terms)


@given(
    tensors=st.integers(0, 190 * GIB),
    count=st.integers(1, 8),
    reserve=st.sampled_from([512 * MIB, 640 * MIB, 768 * MIB]),
    part=st.floats(0.25, 1.0),
    known=st.booleans(),
)
def test_what_was_measured_fits_whatever_its_contexts_were(
    tensors: int, count: int, reserve: int, part: float, *, known: bool
) -> None:
    """
    Told its share of the limit, each of several processes gets its tensors and a margin, be its
    context a quarter of the reserve or all of it.
    """
    context = int(reserve * part)
    one = tensors + context
    most = MostHeld(one * count, count, one if known else 0, count)
    limit = limit_for(most, reserve)
    may = allowance(limit, limit, ShareTerms(reserve, count))

    assert limit >= one * count * 1.15
    assert not may.starved
    assert may.bytes >= int(tensors * 1.149)
