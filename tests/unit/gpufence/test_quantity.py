"""The grammar of Kubernetes quantities, as a table."""

import pytest

from gpufence.errors import InvalidError
from gpufence.quantity import (
    GIB,
    KIB,
    MIB,
    NANO,
    read_bytes,
    read_count,
    read_nano,
    write_bytes,
    write_mebibytes,
)


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("-0", 0),
        ("3", 3 * NANO),
        ("+3", 3 * NANO),
        ("-3", -3 * NANO),
        ("007", 7 * NANO),
        ("1.", NANO),
        (".5", NANO // 2),
        ("-1.5", -3 * NANO // 2),
        ("1n", 1),
        ("1u", 1000),
        ("1m", NANO // 1000),
        ("1k", 1000 * NANO),
        ("1M", 10**6 * NANO),
        ("1G", 10**9 * NANO),
        ("1T", 10**12 * NANO),
        ("1P", 10**15 * NANO),
        ("1E", 10**18 * NANO),
        ("1Ki", KIB * NANO),
        ("1Mi", MIB * NANO),
        ("1Gi", GIB * NANO),
        ("1Ti", 2**40 * NANO),
        ("1Pi", 2**50 * NANO),
        ("1Ei", 2**60 * NANO),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("0.9Gi", 966367641600000000),
        ("966367641600m", 966367641600000000),
        ("1e3", 1000 * NANO),
        ("1E3", 1000 * NANO),
        ("1e+3", 1000 * NANO),
        ("1e-3", NANO // 1000),
        ("1.25E2", 125 * NANO),
    ],
)
def test_every_spelling_of_kubernetes_is_read(text: str, nano: int) -> None:
    """
    Signs, decimals, binary and decimal suffixes and exponents mean what they mean to Kubernetes.
    """
    assert nano == read_nano(text, "field")


@pytest.mark.parametrize(
    ("text", "nano"), [("0.1n", 1), ("-0.1n", -1), ("1.0000000001", NANO + 1), ("1e-12", 1)]
)
def test_what_is_finer_than_a_billionth_rounds_away_from_zero(text: str, nano: int) -> None:
    """A quantity below the resolution of Kubernetes becomes the next larger billionth."""
    assert nano == read_nano(text, "field")


@pytest.mark.parametrize(
    ("value", "nano"), [(6, 6 * NANO), (0.5, NANO // 2), (1e22, 10**22 * NANO)]
)
def test_bare_numbers_of_a_manifest_are_read(value: object, nano: int) -> None:
    """A manifest that no API server has seen may carry a number without quotes."""
    assert nano == read_nano(value, "field")


@pytest.mark.parametrize(
    "value",
    [
        *("", "+", "-", ".", "Gi", "1 ", " 1", "1 Gi", "1GB", "1GiB", "1gi", "1K", "1ki", "1kb"),
        *("1GG", "1.2.3", "1e", "1e2.3", "1e3Mi", "--1", "1_000", "0x10", "NaN", "Inf", "१", "1\n"),
        *(None, True, 2**63, float("nan"), float("inf"), [], {"a": 1}),
    ],
)
def test_everything_else_is_refused(value: object) -> None:
    """What is no quantity raises with its field and a remedy instead of becoming a number."""
    with pytest.raises(InvalidError, match=r"^limits\[x\]: .* is not a Kubernetes quantity; write"):
        read_nano(value, "limits[x]")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1" * 65, "has more than 64 digits"),
        ("1e41", "has an exponent beyond anything Kubernetes can count"),
        ("1e-41", "has an exponent beyond anything Kubernetes can count"),
        ("1e" + "9" * 5000, "has an exponent beyond anything Kubernetes can count"),
    ],
)
def test_absurd_lengths_are_refused_without_work(text: str, reason: str) -> None:
    """Numbers that nobody means cost no time."""
    with pytest.raises(InvalidError) as caught:
        read_nano(text, "field")

    assert reason == caught.value.problem.reason


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("4", 4),
        ("0", 0),
        ("1k", 1000),
        ("4.0", 4),
        ("10G", 10**10),
        (5, 5),
        ("1" * 18, int("1" * 18)),
    ],
)
def test_counts_are_whole(value: object, count: int) -> None:
    """A count is read in every spelling that stands for a whole number."""
    assert count == read_count(value, "field")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1.5", "is not a whole number"),
        ("500m", "is not a whole number"),
        ("1n", "is not a whole number"),
        ("-1", "is negative"),
        ("9223372036854775808", "is larger than Kubernetes can count"),
        ("10E", "is larger than Kubernetes can count"),
        ("٣", "is not a Kubernetes quantity"),
    ],
)
def test_counts_that_are_none_are_refused(value: object, reason: str) -> None:
    """A fraction, a negative number or one beyond 64 bits is no count."""
    with pytest.raises(InvalidError) as caught:
        read_count(value, "field")

    assert reason == caught.value.problem.reason


def test_the_largest_count_is_what_64_bits_hold() -> None:
    """The largest count of the API server itself is still read."""
    assert 2**63 - 1 == read_count("9223372036854775807", "field")


def test_bytes_round_down() -> None:
    """A limit never grows by being read."""
    assert 966367641 == read_bytes("966367641999m", "field")


def test_plain_bytes_are_read_as_they_are() -> None:
    """Programs write bytes without a unit where no unit keeps them exact."""
    assert 2254857830 == read_bytes("2254857830", "field")


def test_negative_bytes_are_refused() -> None:
    """No amount of memory is negative."""
    with pytest.raises(InvalidError, match="is negative; write an amount above zero"):
        read_bytes("-6Gi", "field")


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1023, "1023"),
        (KIB, "1Ki"),
        (1536 * MIB, "1536Mi"),
        (6 * GIB, "6Gi"),
        (2**60, "1Ei"),
        (GIB + 1, "1073741825"),
    ],
)
def test_bytes_are_written_in_the_largest_exact_unit(amount: int, text: str) -> None:
    """Written bytes are short and exact."""
    assert text == write_bytes(amount)


def test_the_largest_unit_can_be_chosen() -> None:
    """Amounts that people compare stay in one unit."""
    assert "6144Mi" == write_bytes(6 * GIB, largest="Mi")


def test_mebibytes_round_down() -> None:
    """A figure for people never says more than there is."""
    assert "2150Mi" == write_mebibytes(2151 * MIB - 1)
