"""Lists as they come in: in pieces of any size, one object at a time."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube.errors import BadReplyError, GoneError, KubeError
from kube.lists import Page, collect, read_page

HEAD = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
ITEMS = [
    {"name": "a", "text": '} "],{\\'},
    {"name": "b", "text": "\u20ac\U0001f600" * 9, "deep": [{"x": [[], {}]}]},
    {"name": "c", "number": -1.5e3, "nothing": None, "yes": True},
]


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[start : start + size] for start in range(0, len(text), size))


def written(**more: Any) -> bytes:
    return json.dumps({**HEAD, **more}).encode()


def read(text: bytes, size: int = 2**16, **more: Any) -> Page[Any]:
    return read_page("GET /x", pieces(text, size), lambda item: item, **more)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("plain", [True, False])
def test_a_list_in_pieces(size: int, indent: int | None, *, plain: bool) -> None:
    """Wherever its bytes are cut, a list is what it would be in one piece."""
    text = json.dumps({**HEAD, "items": ITEMS}, indent=indent, ensure_ascii=plain).encode()

    assert Page(ITEMS, {"resourceVersion": "7"}) == read(text, size)


def test_metadata_behind_the_items() -> None:
    """The order of a list's fields says nothing."""
    text = json.dumps({"items": ITEMS, "metadata": {"continue": "x"}, "kind": "PodList"})

    assert Page(ITEMS, {"continue": "x"}) == read(text.encode(), 5)


@pytest.mark.parametrize(
    "text",
    [written(items=None), written(), written(items=[]), b'{"kind":"PodList","metadata":null}'],
)
def test_a_list_of_nothing(text: bytes) -> None:
    """Go writes an empty list as null, or not at all."""
    assert [] == read(text, 4).items


def test_each_object_is_reduced_before_the_next_is_read() -> None:
    """Of a list larger than what is believed of one object, one object at a time is there."""
    large = {"name": "x" * 50_000}
    text = written(items=[large] * 40)
    page = read_page("GET /x", pieces(text, 4096), lambda item: len(item["name"]), 100_000)

    assert [50_000] * 40 == page.items


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no list of objects"),
        (b"[]", "no list of objects"),
        (b"{}", "no list of objects"),
        (b'{"kind":"Pod","items":null}', "no list of objects"),
        (written(items={}), "no list of objects"),
        (written(items="x"), "no list of objects"),
        (written(items=[1]), "no list of objects"),
        (b'{"kind" "PodList"}', "no list of objects"),
        (b'{"kind":"PodList";}', "no list of objects"),
        (written(items=ITEMS)[:-1], "no list of objects"),
        (written(items=ITEMS)[:-3], "ends in the middle"),
        (written(items=ITEMS) + b"{}", "goes on after its end"),
        (b"<html>", "no list of objects"),
        (b'{"kind":\xff"PodList"}', "no UTF-8"),
        (b'{"items":[{"a":"\xe2', "no UTF-8"),
        (b'{"items":[' + b'{"a":' * 10_000, "ends in the middle"),
        (written(items=[{"a": "x" * 300_000}]), "longer than 100000"),
    ],
)
def test_what_is_no_list_is_refused(text: bytes, words: str) -> None:
    """Nothing is guessed at: what is not whole, or no list of objects, is an error."""
    with pytest.raises(BadReplyError, match=words):
        read(text, 1000, limit_bytes=100_000)


def test_a_refusal_that_comes_as_an_answer() -> None:
    """A Status where a list was asked for is the error that it means."""
    said = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old"}

    with pytest.raises(GoneError, match="too old"):
        read(json.dumps(said).encode())


@pytest.mark.parametrize(
    "page", [{"kind": "Pod"}, {"kind": "PodList", "items": [1]}, {"items": "x"}]
)
def test_a_whole_page_that_is_no_list(page: dict[str, Any]) -> None:
    """Whoever reads pages whole gets the same errors."""
    with pytest.raises(KubeError, match="no list of objects"):
        collect(lambda *_: page, "/x", lambda item: item)


def test_whole_pages() -> None:
    """Pages that were read whole are put together as well, and an empty one is one."""
    pages: list[dict[str, Any]] = [
        {**HEAD, "items": [{"name": "a"}], "metadata": {"continue": "t"}},
        {**HEAD, "items": None},
    ]
    listing = collect(lambda *_: pages.pop(0), "/x", lambda item: item["name"])

    assert (["a"], "7") == (listing.items, listing.resource_version)


def test_a_list_without_a_version() -> None:
    """Without its version no watch could continue from a list."""
    with pytest.raises(BadReplyError, match=r"no metadata\.resourceVersion"):
        collect(lambda *_: {"kind": "PodList", "items": []}, "/x", lambda item: item)
