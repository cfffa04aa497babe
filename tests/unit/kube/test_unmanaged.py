"""
Lists whose objects say who wrote what.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.unmanaged import unmanaged

TRAP = '}]},"spec":[{"managedFields":[{'
PLAIN = {"metadata": {"name": "p", "annotations": {TRAP: TRAP, "managedFields": "x"}}, "spec": {}}


def managed(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    fields: dict[str, object] = {f'k:{{"name":"{key}"}}': {".": {}, "f:value": {}} for key in keys}
    entry = {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:annotations": fields}}}
    metadata = {**item["metadata"], "managedFields": [entry, entry]}
    return {**item, "metadata": metadata}


def left(value: object, size: int) -> Any:
    text = json.dumps(value, separators=(",", ":")).encode()
    chunks = iter([text[at : at + size] for at in range(0, len(text), size)])
    pieces = list(unmanaged(chunks))

    assert all(pieces)
    return json.loads(b"".join(pieces))


@pytest.mark.parametrize("size", [1, 2, 5, 19, 20, 64, 10_000])
def test_nothing_but_managers_is_left_out(size: int) -> None:
    """
    Strings that look like the one or the other end stay as they are.
    """
    said = {"items": [managed(PLAIN, "a", TRAP), PLAIN, managed(PLAIN)], "kind": "List"}

    assert {"items": [PLAIN] * 3, "kind": "List"} == left(said, size)


@given(
    st.lists(st.text(alphabet='}],{["\\a:managedFields', max_size=30), max_size=4),
    st.integers(1, 200),
)
def test_no_text_passes_for_an_end(keys: list[str], size: int) -> None:
    """
    Whatever tenants call their things.
    """
    plain = {"metadata": {"name": "p", "labels": dict.fromkeys(keys, TRAP)}, "spec": {"a": keys}}

    assert [plain, plain] == left([managed(plain, *keys), managed(plain, *keys)], size)


def test_what_ends_in_the_middle_ends_there() -> None:
    """
    The reader of lists says so.
    """
    text = b'{"items":[{"metadata":{"name":"a","managedFields":[{"manager":"'

    assert b'{"items":[{"metadata":{"name":"a"' == b"".join(unmanaged(iter([text])))
    assert [] == list(unmanaged(iter([])))
