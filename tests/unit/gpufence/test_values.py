"""Amounts and JSON as others wrote them."""

import json
import re
from collections.abc import Callable
from types import MappingProxyType

import pytest

from gpufence.errors import InvalidError, UnknownVersionError
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
from gpufence.shape import (
    as_integer,
    as_list,
    as_object,
    as_text,
    as_texts,
    escape_pointer,
    objects,
    read_versioned,
    texts,
    whole_number,
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
        *(("0.1n", 1), ("-0.1n", -1), ("1.0000000001", NANO + 1), ("1e-12", 1)),
        *((6, 6 * NANO), (0.5, NANO // 2), (1e22, 10**22 * NANO)),
    ],
)
def test_every_spelling_of_kubernetes_is_read(text: object, nano: int) -> None:
    """
    Signs, suffixes and exponents mean what they mean to Kubernetes, and what is finer than a
    billionth rounds away from zero; a manifest may have numbers without quotes.
    """
    assert nano == read_nano(text, "field")


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
        ("9223372036854775807", 2**63 - 1),
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


def test_bytes_round_down() -> None:
    """A limit never grows by being read, nor a figure for people by being written."""
    assert [966367641, 2254857830] == [
        read_bytes(text, "field") for text in ("966367641999m", "2254857830")
    ]
    assert "2150Mi" == write_mebibytes(2151 * MIB - 1)
    assert "6144Mi" == write_bytes(6 * GIB, largest="Mi")
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


@pytest.mark.parametrize(
    ("read", "empty"),
    [(as_object, {}), (as_list, []), (as_text, ""), (as_texts, {}), (objects, []), (texts, ())],
)
def test_nothing_means_empty(read: Callable[[object, str], object], empty: object) -> None:
    """An absent value and a null mean empty, as they do to Kubernetes."""
    assert empty == read(None, "field")


@pytest.mark.parametrize(
    ("read", "value", "reason"),
    [
        (as_object, [], "is not an object"),
        (as_object, {1: "a"}, "is not an object"),
        (as_list, {}, "is not a list"),
        (as_list, "ab", "is not a list"),
        (as_text, 1, "is not text"),
        (as_integer, "1", "is not a whole number"),
        (as_integer, True, "is not a whole number"),
        (as_integer, None, "is not a whole number"),
        (as_integer, -1, "is not a whole number"),
    ],
)
def test_a_wrong_shape_is_refused_with_its_path(
    read: Callable[[object, str], object], value: object, reason: str
) -> None:
    """The error names the path of the value and what it should have been."""
    with pytest.raises(InvalidError) as caught:
        read(value, "spec.containers[0]")

    assert ("spec.containers[0]", reason) == (
        caught.value.problem.field,
        caught.value.problem.reason,
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (as_object(MappingProxyType({"a": 1}), "f"), {"a": 1}),
        (as_texts({"a": "1", "b": None}, "f"), {"a": "1", "b": ""}),
        (texts(["b", None, "a"], "f"), ("b", "", "a")),
        (objects([{"a": 1}, None], "f"), [{"a": 1}, {}]),
        (as_integer(3, "f", least=3), 3),
    ],
)
def test_what_has_the_shape_is_read(found: object, expected: object) -> None:
    """A null among texts or objects is an empty one, and a read-only view is as good as a dict."""
    assert expected == found


@pytest.mark.parametrize(
    ("read", "value", "where"),
    [
        (as_texts, {"a": "1", "b": 2}, "[b]"),
        (texts, ["--epochs", 100], "[1]"),
        (objects, [{}, 1], "[1]"),
    ],
)
def test_the_item_that_is_none_is_named(
    read: Callable[[object, str], object], value: object, where: str
) -> None:
    """Among many annotations, arguments or containers the wrong one is named."""
    with pytest.raises(InvalidError, match=f"^field{re.escape(where)}: "):
        read(value, "field")


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("2147483648", 2**31)])
def test_plain_decimal_text_is_a_number(text: str, number: int) -> None:
    """Annotations and labels carry whole numbers as digits."""
    assert number == whole_number(text, "field")


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "+1", "1.0", "1e3", " 1", "1_0", "²", "٣", "2147483649", "0" * 20 + "12"],
)
def test_text_that_is_no_plain_number_is_refused(text: str) -> None:
    """
    Signs, blanks, digits of other scripts and numbers out of bounds are named with the bounds;
    leading zeros never shorten a number.
    """
    with pytest.raises(InvalidError, match="write a number from 1 to 2147483648"):
        whole_number(text, "field")


def test_a_known_version_is_read() -> None:
    """JSON that says its version is handed on as an object."""
    assert {"v": 1, "a": "b"} == read_versioned('{"v":1,"a":"b"}', "field", 1)


@pytest.mark.parametrize("version", ["2", "null", '"1"', "true", "[]"])
def test_an_unknown_version_is_named(version: str) -> None:
    """A version that is not exactly ours is never guessed at."""
    with pytest.raises(UnknownVersionError) as caught:
        read_versioned(f'{{"v":{version}}}', "field", 1)

    assert json.loads(version) == caught.value.version


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, r'"[^"]*" is not JSON') for text in ("", "{", "[" * 100_000, "nonsense")),
        ("[1]", "is not an object"),
    ],
)
def test_text_that_is_no_versioned_json_is_refused(text: str, why: str) -> None:
    """A broken annotation is somebody's mistake, however deep its brackets go; a list has none."""
    with pytest.raises(InvalidError, match=why):
        read_versioned(text, "field", 1)


def test_a_pointers_token_is_escaped() -> None:
    """A slash in a key does not lead deeper into the object."""
    assert "gpufence.io~1plan~0" == escape_pointer("gpufence.io/plan~")
