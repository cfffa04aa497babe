"""Lists whose objects say who wrote what."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.unmanaged import unmanaged

TRAP = '}]},"spec":[{"managedFields":[{\\'
TEXTS = st.text(alphabet='}],{["\\a:managedFields', max_size=30)
VALUES = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)
PLAIN = {"metadata": {"name": "p", "annotations": {TRAP: TRAP, "managedFields": "x"}}, "spec": {}}


def managed(item: dict[str, Any], fields: object, *, last: bool = True) -> dict[str, Any]:
    """
    Return the same object with managers, which stand behind all else or, in custom resources, in
    the order of the alphabet.
    """
    entry = {"manager": "kubectl", "fieldsV1": {"f:metadata": fields}}
    metadata = {**item["metadata"], "managedFields": [entry, entry], **({} if last else {"z": 1})}
    return {**item, "metadata": metadata}


def left(value: object, size: int) -> Any:
    text = json.dumps(value, separators=(",", ":")).encode()
    chunks = iter([text[at : at + size] for at in range(0, len(text), size)])
    pieces = list(unmanaged(chunks))

    assert all(pieces)
    return json.loads(b"".join(pieces))


@pytest.mark.parametrize("size", [1, 2, 5, 19, 20, 64, 10_000])
def test_nothing_but_managers_is_left_out(size: int) -> None:
    """Strings that look like the one or the other end stay as they are."""
    keys: dict[str, object] = {
        f'k:{{"name":"{key}"}}': {".": {}, "f:value": {}} for key in ("a", TRAP)
    }
    said = {"items": [managed(PLAIN, keys), PLAIN, managed(PLAIN, {})], "kind": "List"}

    assert {"items": [PLAIN] * 3, "kind": "List"} == left(said, size)


def test_managers_may_stand_before_other_fields() -> None:
    """In custom resources the fields of metadata are in the order of the alphabet."""
    there = {"metadata": {**PLAIN["metadata"], "z": 1}, "spec": {}}

    assert [there, there] == left([managed(PLAIN, {}, last=False)] * 2, 64)


def test_an_object_may_end_with_its_managers() -> None:
    """Where metadata is all that was asked for."""
    bare = {"metadata": {"name": "p"}}

    assert {"items": [bare]} == left({"items": [managed(bare, {"f:labels": {}})]}, 64)


@given(VALUES, VALUES, st.integers(1, 200))
def test_no_text_passes_for_an_end(fields: object, other: object, size: int) -> None:
    """Whatever tenants call their things, and whatever they write where managers are."""
    plain = {"metadata": {"name": "p", "labels": other}, "spec": {"a": other}}

    assert [plain, plain] == left([managed(plain, fields), managed(plain, fields)], size)


def test_what_ends_in_the_middle_ends_there() -> None:
    """The reader of lists says so."""
    text = b'{"items":[{"metadata":{"name":"a","managedFields":[{"manager":"'

    assert b'{"items":[{"metadata":{"name":"a"' == b"".join(unmanaged(iter([text])))
    assert [] == list(unmanaged(iter([])))


def test_managers_without_end_are_not_kept() -> None:
    """They cost no more memory than one object may."""
    pieces = unmanaged(iter([b'{"a":1,"managedFields":["', *[b"x" * 2**20] * 20, b'"]}']))

    assert b'{"a":1' == b"".join(pieces)
