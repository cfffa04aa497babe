from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.errors import InvalidError
from gpufence.quantity import LARGEST, NANO, read_bytes, read_nano, write_bytes, write_mebibytes
from tests.property.strategies import json_values, noise

_SCALES = {
    **{suffix: Fraction(2**bits) for suffix, bits in [("Ki", 10), ("Mi", 20), ("Gi", 30)]},
    **{suffix: Fraction(10) ** power for suffix, power in [("n", -9), ("u", -6), ("m", -3)]},
    **{suffix: Fraction(10) ** power for suffix, power in [("", 0), ("k", 3), ("M", 6), ("G", 9)]},
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@given(st.integers(0, LARGEST))
def test_bytes_survive_the_round_trip(amount: int) -> None:
    """Bytes written as a quantity read back as the same bytes."""
    assert amount == read_bytes(write_bytes(amount), "field")


@given(st.integers(0, LARGEST))
def test_whole_mebibytes_never_say_more_than_there_is(amount: int) -> None:
    """The rendering for people is rounded down."""
    shown = read_bytes(write_mebibytes(amount), "field")

    assert shown <= amount < shown + 2**20


@given(st.integers(0, 10**9), st.text("0123456789", max_size=6), st.sampled_from(sorted(_SCALES)))
def test_any_spelling_means_its_exact_value(whole: int, part: str, suffix: str) -> None:
    """A number with a suffix means what arithmetic says, rounded up to a billionth."""
    exact = Fraction(f"{whole}.{part or 0}") * _SCALES[suffix] * NANO

    assert -(-exact.numerator // exact.denominator) == read_nano(f"{whole}.{part}{suffix}", "f")


@given(json_values | noise)
def test_noise_is_a_quantity_or_an_error_that_names_the_field(value: object) -> None:
    """Whatever stands in a quantity's place is read exactly or refused by name."""
    try:
        read_bytes(value, "spec.somewhere")
    except InvalidError as error:
        assert "spec.somewhere" == error.problem.field
        assert error.problem.remedy


@pytest.mark.parametrize("text", ["1e999999999", "9" * 10_000, "1" + "0" * 63 + "Ei"])
def test_monstrous_numbers_are_refused_at_once(text: str) -> None:
    """A number beyond anything Kubernetes counts is refused without computing it."""
    with pytest.raises(InvalidError):
        read_bytes(text, "field")
