"""Typed access to JSON nobody has promised."""

import json
from collections.abc import Callable
from types import MappingProxyType

import pytest

from gpufence.errors import InvalidError, UnknownVersionError
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


def test_any_mapping_is_an_object() -> None:
    """A read-only view is as good as a dict."""
    assert {"a": 1} == as_object(MappingProxyType({"a": 1}), "field")


def test_texts_name_the_key_that_is_none() -> None:
    """Among many annotations the wrong one is named."""
    with pytest.raises(InvalidError, match=r"^annotations\[b\]: "):
        as_texts({"a": "1", "b": 2}, "annotations")


def test_a_text_may_be_absent() -> None:
    """A null among texts is an empty one."""
    assert {"a": "1", "b": ""} == as_texts({"a": "1", "b": None}, "field")
    assert ("1", "") == texts(["1", None], "field")


def test_texts_are_read_in_order() -> None:
    """A list of texts comes back as it is."""
    assert ("b", "a") == texts(["b", "a"], "field")


def test_listed_texts_name_the_item_that_is_none() -> None:
    """Among many arguments the wrong one is named."""
    with pytest.raises(InvalidError, match=r"^args\[1\]: "):
        texts(["--epochs", 100], "args")


def test_an_object_may_be_absent() -> None:
    """A null among objects is an empty one."""
    assert [{"a": 1}, {}] == objects([{"a": 1}, None], "field")


def test_objects_name_the_item_that_is_none() -> None:
    """Among many items the wrong one is named."""
    with pytest.raises(InvalidError, match=r"^containers\[1\]: "):
        objects([{}, 1], "containers")


def test_integers_of_json_are_read() -> None:
    """A whole number within bounds is itself."""
    assert 3 == as_integer(3, "field", least=3)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), ("2147483648", 2**31)])
def test_plain_decimal_text_is_a_number(text: str, number: int) -> None:
    """Annotations and labels carry whole numbers as digits."""
    assert number == whole_number(text, "field")


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "+1", "1.0", "1e3", " 1", "1_0", "²", "٣", "2147483649"]
)
def test_text_that_is_no_plain_number_is_refused(text: str) -> None:
    """
    Signs, blanks, digits of other scripts and numbers out of bounds are named with the bounds.
    """
    with pytest.raises(InvalidError, match="write a number from 1 to 2147483648"):
        whole_number(text, "field")


def test_leading_zeros_never_shorten_a_number() -> None:
    """A number too long to be meant is refused whole, never read by its first digits."""
    with pytest.raises(InvalidError):
        whole_number("00000000000000000001234", "field")


def test_a_known_version_is_read() -> None:
    """JSON that says its version is handed on as an object."""
    assert {"v": 1, "a": "b"} == read_versioned('{"v":1,"a":"b"}', "field", 1)


@pytest.mark.parametrize("version", ["2", "null", '"1"', "true", "[]"])
def test_an_unknown_version_is_named(version: str) -> None:
    """A version that is not exactly ours is never guessed at."""
    with pytest.raises(UnknownVersionError) as caught:
        read_versioned(f'{{"v":{version}}}', "field", 1)

    assert json.loads(version) == caught.value.version


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nonsense"])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    """A broken annotation is somebody's mistake, however deep its brackets go."""
    with pytest.raises(InvalidError, match=r'"[^"]*" is not JSON'):
        read_versioned(text, "field", 1)


def test_json_that_is_no_object_is_refused() -> None:
    """A list has no version."""
    with pytest.raises(InvalidError, match="is not an object"):
        read_versioned("[1]", "field", 1)


def test_a_pointers_token_is_escaped() -> None:
    """A slash in a key does not lead deeper into the object."""
    assert "gpufence.io~1plan~0" == escape_pointer("gpufence.io/plan~")
