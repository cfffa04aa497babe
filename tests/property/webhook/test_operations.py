"""Patches of any size: what the operations make of an object is what the patch has made of it."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.rewrite.patch import MOST_OPERATIONS, Patch

_keys = st.sampled_from(["a", "b/c", "d~e", "f", "~1", "g.io/h"])
_few = st.integers(0, 3)
_many = st.integers(MOST_OPERATIONS - 2, MOST_OPERATIONS + 1)


def document() -> dict[str, Any]:
    return {
        "metadata": {"labels": {"x": "1"}, "annotations": {"a": "1"}},
        "spec": {"args": ["0", "1", "2"], "env": [{"name": str(n)} for n in range(5)]},
    }


class Changes:
    """One change after another, each of what is there by then."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.patch = Patch(document())

    def update(self) -> None:
        path = self.draw(st.sampled_from([("metadata", "labels"), ("metadata", "annotations")]))
        self.patch.update(path, self.draw(st.dictionaries(_keys, st.text(max_size=3))))

    def update_many(self, count: int) -> None:
        made = {f"k{n}": "v" for n in range(count)}
        self.patch.update(("metadata", "annotations"), made)

    def set_field(self) -> None:
        self.patch.update(("spec",), {"schedulerName": self.draw(st.text(max_size=3))})

    def remove(self) -> None:
        labels = self.patch.at(("metadata", "labels"))
        self.patch.remove(("metadata", "labels"), *self.draw(_some(sorted(labels))))

    def extend(self) -> None:
        path = ("spec", self.draw(st.sampled_from(["args", "tolerations"])))
        self.patch.extend(path, [str(n) for n in range(self.draw(_few | _many))])

    def replace(self) -> None:
        last = len(self.patch.document["spec"]["args"]) - 1
        if last >= 0:
            at = self.draw(st.integers(0, last))
            self.patch.replace(("spec", "args"), at, self.draw(st.text(max_size=3)))

    def drop(self) -> None:
        positions = range(len(self.patch.document["spec"]["args"]))
        self.patch.drop_items(("spec", "args"), sorted(self.draw(_some(positions))))

    def change_item(self) -> None:
        at = self.draw(st.integers(0, 4))
        self.patch.update(("spec", "env", at), self.draw(st.dictionaries(_keys, st.text())))


def _some(items: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), unique=True, max_size=5) if items else st.just([])


_CHANGES = (
    Changes.update,
    Changes.set_field,
    Changes.remove,
    Changes.extend,
    Changes.replace,
    Changes.drop,
    Changes.change_item,
)


@pytest.mark.parametrize("last", _CHANGES)
@given(
    data=st.data(),
    many=st.sampled_from([0, 1, *range(MOST_OPERATIONS - 4, MOST_OPERATIONS + 3)]),
    order=st.lists(st.sampled_from(_CHANGES), max_size=2),
)
def test_the_operations_make_what_the_patch_has_made(
    data: Any, many: int, order: list[Any], last: Any
) -> None:
    """Applied to the object as it was, the operations lead to the object that the patch holds."""
    changes = Changes(data)
    changes.update_many(many)
    for change in (*order, last):
        change(changes)
    operations = copy.deepcopy(changes.patch.operations)

    assert changes.patch.document == jsonpatch.apply_patch(document(), operations)
    assert len(operations) <= MOST_OPERATIONS
