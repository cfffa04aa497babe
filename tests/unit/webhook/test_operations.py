"""JSON-patch operations, made one by one."""

import copy
from typing import Any

import jsonpatch
import pytest

from webhook.rewrite.patch import MOST_OPERATIONS, Patch

ITEM = {"name": "x"}


def document() -> dict[str, Any]:
    return {"metadata": {"annotations": {"a/b~c": "1"}}, "spec": {"list": [{"k": 1}, {"k": 2}]}}


def test_keys_are_escaped() -> None:
    """Slashes and tildes in keys are written as RFC 6901 wants them."""
    patch = Patch(document())
    patch.update(("metadata", "annotations"), {"a/b~c": "2"})
    patch.remove(("metadata", "annotations"), "a/b~c")

    assert ["/metadata/annotations/a~1b~0c"] * 2 == [item["path"] for item in patch.operations]


def test_what_is_there_is_replaced_and_the_rest_added() -> None:
    """A member that exists is replaced, another one added."""
    patch = Patch(document())
    patch.update(("metadata", "annotations"), {"a/b~c": "2", "d": "3"})

    assert ["replace", "add"] == [item["op"] for item in patch.operations]


@pytest.mark.parametrize("missing", [{}, {"annotations": None}])
def test_parents_are_made(missing: dict[str, Any]) -> None:
    """Where the object is missing, or null, one operation makes it with all its members."""
    patch = Patch({"metadata": missing})
    patch.update(("metadata", "annotations"), {"a": "1", "b": "2"})
    patch.update(("metadata", "annotations"), {"c": "3"})

    assert ["/metadata/annotations", "/metadata/annotations/c"] == [
        item["path"] for item in patch.operations
    ]
    assert {"a": "1", "b": "2"} == patch.operations[0]["value"]


def test_the_object_agrees_with_its_operations() -> None:
    """Applied by somebody else, the operations lead to the object the patch holds."""
    before = document()
    patch = Patch(document())
    patch.extend(("spec", "list"), [ITEM])
    patch.drop_items(("spec", "list"), [0])
    patch.update(("spec", "list", 0), {"k": "new"})
    patch.extend(("spec", "more"), [ITEM])
    patch.extend(("spec", "texts"), ["one"])
    patch.extend(("spec", "texts"), ["two"])
    applied = jsonpatch.apply_patch(copy.deepcopy(before), copy.deepcopy(patch.operations))

    assert applied == patch.document


def test_nothing_to_do_is_no_operation() -> None:
    """Empty changes leave no trace."""
    patch = Patch(document())
    patch.update(("metadata", "annotations"), {})
    patch.extend(("spec", "list"), [])

    assert [] == patch.operations


def test_what_cannot_apply_cannot_be_made() -> None:
    """An operation on what is not there raises here, before anybody else sees it."""
    patch = Patch(document())
    with pytest.raises(KeyError):
        patch.remove(("metadata", "annotations"), "missing")
    with pytest.raises(TypeError):
        patch.update(("nowhere", "at all"), {"a": "1"})

    assert [] == patch.operations


def test_an_operation_stays_what_it_was() -> None:
    """What is added to a list later is no part of the operation that made it."""
    patch = Patch({})
    patch.extend(("list",), [ITEM])
    patch.extend(("list",), [ITEM])

    assert [[ITEM], ITEM] == [item["value"] for item in patch.operations]


def test_an_item_is_replaced_after_however_many_changes() -> None:
    """A change of another part is kept where there are so many that parts are replaced."""
    before = {"metadata": {"annotations": {}}, "spec": {"args": ["a", "b"]}}
    patch = Patch(copy.deepcopy(before))
    patch.update(("metadata", "annotations"), {f"k{n}": "v" for n in range(MOST_OPERATIONS + 1)})
    patch.replace(("spec", "args"), 1, "c")

    assert ["a", "c"] == jsonpatch.apply_patch(before, patch.operations)["spec"]["args"]
