from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpufence.annotations import Headroom
from gpufence.quantity import MIB
from gpufence.share import LEAST_ALLOWANCE, ShareTerms, allowance, smallest_limit
from tests.property.strategies import amounts, cards

terms = st.builds(
    ShareTerms,
    reserve_bytes=st.integers(0, 3000).map(lambda value: value * MIB),
    processes=st.integers(1, 64),
    headroom=st.sampled_from(Headroom),
)


def _fraction(limit: int, card: int, term: ShareTerms) -> Fraction:
    return Fraction(allowance(limit, card, term).fraction_of(card))


@given(amounts, cards, terms)
def test_a_fraction_is_never_zero(limit: int, card: int, term: ShareTerms) -> None:
    """No limit on any card leads to a fraction of zero, which frameworks read as no cap."""
    assert _fraction(limit, card, term) > 0


@given(amounts, cards, terms)
def test_a_fraction_is_never_above_the_limit(limit: int, card: int, term: ShareTerms) -> None:
    """What a framework may take is never above the limit, nor above the card."""
    assert _fraction(limit, card, term) <= Fraction(min(limit, card), card)


@given(amounts, cards, terms)
def test_all_processes_together_stay_within_the_limit(
    limit: int, card: int, term: ShareTerms
) -> None:
    """The allowances of all processes on a card sum to no more than the limit."""
    may = allowance(limit, card, term)

    assert may.bytes * term.processes <= max(limit, term.processes)
    assert may.starved or term.processes * (may.bytes + term.reserve_bytes) <= min(limit, card)


@given(amounts, amounts, cards, terms)
def test_a_larger_limit_never_means_less(
    first: int, second: int, card: int, term: ShareTerms
) -> None:
    """
    The fraction is monotonic in the limit, except where a starved limit gets the least there is.
    """
    low, high = sorted((first, second))
    if not allowance(low, card, term).starved:
        assert _fraction(low, card, term) <= _fraction(high, card, term)


@given(amounts, cards, cards, terms)
def test_a_larger_card_never_means_a_larger_fraction(
    limit: int, first: int, second: int, term: ShareTerms
) -> None:
    """The fraction is antitone in the card, for limits that both cards hold."""
    small, large = sorted((first, second))
    if limit <= small:
        assert _fraction(limit, small, term) >= _fraction(limit, large, term)


@given(amounts, cards, terms, st.integers(1, 64))
def test_more_processes_never_mean_more_for_each(
    limit: int, card: int, term: ShareTerms, more: int
) -> None:
    """The fraction is antitone in the number of processes, as long as nobody is starved."""
    crowded = ShareTerms(term.reserve_bytes, term.processes + more, term.headroom)
    if not allowance(limit, card, crowded).starved:
        assert _fraction(limit, card, crowded) <= _fraction(limit, card, term)


@given(terms)
def test_the_smallest_limit_is_the_smallest(term: ShareTerms) -> None:
    """The limit a warning names is enough, while one MiB less is not."""
    limit = smallest_limit(term)
    card = limit * 2

    assert allowance(limit, card, term).bytes >= LEAST_ALLOWANCE
    assert allowance(limit - MIB, card, term).starved


@given(amounts, cards, terms)
def test_auto_never_allows_less_than_the_factor(limit: int, card: int, term: ShareTerms) -> None:
    """Headroom auto gives a framework at least what the factor gives it."""
    factor = ShareTerms(term.reserve_bytes, term.processes, Headroom.FACTOR)
    auto = ShareTerms(term.reserve_bytes, term.processes, Headroom.AUTO)

    assert allowance(limit, card, factor).bytes <= allowance(limit, card, auto).bytes
