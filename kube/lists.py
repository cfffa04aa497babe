"""
PURE. Read lists: page by page, and of each page object by object, as its bytes come in.

A tenant decides how large an object is, and JSON makes of some bytes six. So no answer ever stands
in memory whole: of each object the caller keeps what it needs before the next one is read.
"""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kube.errors import BadReplyError, GoneError
from kube.replies import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kube.replies import JsonObject

T = TypeVar("T")
Query: TypeAlias = "Mapping[str, str | int]"

PAGE_SIZE: Final = 500
OBJECT_LIMIT_BYTES: Final = 16 * 2**20
"""The longest text of one object that is believed; etcd takes objects of about 1.5 MiB."""

_ATTEMPTS = 3
_LEAST_CHARACTERS = 2**16
_DECODER = json.JSONDecoder()
_NO_SPACE = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """
    All objects of a collection as they were at one moment; a watch continues from its version.
    """

    resource_version: str
    items: list[T]


class Page(NamedTuple, Generic[T]):
    """One answer: what was kept of its objects, and the list's own metadata."""

    items: list[T]
    metadata: JsonObject


def as_is(item: JsonObject) -> JsonObject:
    """Keep a listed object whole: the projection for callers who want everything."""
    return item


def collect_pages(
    read: Callable[[Query], Page[T]],
    path: str,
    query: Query | None = None,
    page_size: int = PAGE_SIZE,
) -> Listing[T]:
    """
    Read every page and put them together.

    A page size of 0 asks for everything in one answer. When the server has forgotten the list
    before its last page (410), it begins anew: pages of two lists do not mix. Objects in a list
    carry neither kind nor apiVersion.
    """
    first = {**(query or {}), **({"limit": page_size} if page_size else {})}
    for attempt in range(1, _ATTEMPTS + 1):
        page = read(first)
        items = page.items
        try:
            while token := _metadata(page, path, "continue", default=""):
                page = read({**_without_version(first), "continue": token})
                items += page.items
        except GoneError:
            if attempt == _ATTEMPTS:
                raise
            continue
        return Listing(_metadata(page, path, "resourceVersion"), items)
    raise AssertionError("the last attempt returns or raises")


def read_page(
    request: str,
    chunks: Iterator[bytes],
    keep: Callable[[JsonObject], T],
    limit_bytes: int = OBJECT_LIMIT_BYTES,
) -> Page[T]:
    """
    Read an answer from its bytes as they come, never holding more than one object of it.

    Raises BadReplyError where it is no list of objects, and a ReplyError where it is a refusal.
    """
    text = _Text(request, chunks, limit_bytes)
    items: list[T] = []
    said: JsonObject = {}
    listed = False
    for name in text.members("{", "}"):
        if name == "items" and text.peek() == "[":
            listed = True
            items += (keep(text.item()) for _ in text.members("[", "]"))
        else:
            said[name] = text.value()
    text.end()
    if said.get("kind") == "Status" and said.get("status") == "Failure":
        raise status_error(request, said)
    # Go writes an empty list as null.
    is_list = str(said.get("kind", "")).endswith("List") and said.get("items") is None
    if not listed and not is_list:
        raise _no_list(request)
    metadata = said.get("metadata")
    return Page(items, metadata if isinstance(metadata, dict) else {})


class _Text:
    """A text of JSON that comes in pieces, of which only what is not read yet is there."""

    def __init__(self, request: str, chunks: Iterator[bytes], limit: int) -> None:
        self._request = request
        self._chunks = chunks
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is no space; nothing at the end."""
        while True:
            found = _NO_SPACE.search(self._text, self._at)
            if found:
                self._at = found.start()
                return found[0]
            self._at = len(self._text)
            if not self._more(1):
                return ""

    def members(self, opening: str, closing: str) -> Iterator[str]:
        """Stop before the value of each member, with its name in an object."""
        self._take(opening)
        if self.peek() == closing:
            self._at += 1
            return
        while True:
            name = ""
            if opening == "{":
                name = str(self.value())
                self._take(":")
            yield name
            if self.peek() == closing:
                self._at += 1
                return
            self._take(",")

    def value(self) -> Any:  # noqa: ANN401 (whatever a stranger sends; callers check)
        """Read one value, however many pieces it comes in."""
        closing = "}" if self.peek() == "{" else ""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError):
                end = len(self._text)
            if end < len(self._text):
                self._at = end
                return value
            # Half a value: tried again once there is a quarter more, and an end that may be its
            # own, so that all tries together cost little, and little of what follows is there.
            there = len(self._text) - self._at
            if not self._more(there + max(there // 4, _LEAST_CHARACTERS), closing):
                raise self._bad("the answer ends in the middle, or is no JSON")

    def item(self) -> JsonObject:
        """Read one value, which is to be an object."""
        value = self.value()
        if not isinstance(value, dict):
            raise _no_list(self._request)
        return value

    def end(self) -> None:
        if self.peek():
            raise self._bad("the answer goes on after its end")

    def _take(self, wanted: str) -> None:
        found = self.peek()
        if found != wanted:
            raise _no_list(self._request)
        self._at += 1

    def _more(self, wanted: int, closing: str = "") -> bool:
        """
        Read on until so many characters are there, a closing one among the new ones, or until the
        end; return whether any came.
        """
        pieces = [self._text[self._at :]]
        self._text, self._at = "", 0
        before = there = len(pieces[0])
        closed = not closing
        while not self._ended and (there < wanted or not closed):
            chunk = next(self._chunks, b"")
            self._ended = not chunk
            try:
                pieces.append(self._decode(chunk, self._ended))
            except UnicodeDecodeError as error:
                raise self._bad("the answer is no UTF-8") from error
            there += len(pieces[-1])
            closed = closed or closing in pieces[-1]
            if before > self._limit or there > 2 * self._limit:
                raise self._bad(f"an object is longer than {self._limit} bytes")
        self._text = "".join(pieces)
        return there > before

    def _bad(self, what: str) -> BadReplyError:
        return BadReplyError(
            f"{self._request}: {what}; is this the address of a Kubernetes API server?"
        )


def _no_list(request: str) -> BadReplyError:
    return BadReplyError(f"{request}: the answer is no list of objects")


def _metadata(page: Page[Any], path: str, name: str, default: str | None = None) -> str:
    value = page.metadata.get(name, default)
    if not isinstance(value, str):
        raise BadReplyError(f"GET {path}: the list has no metadata.{name}")
    return value


def _without_version(query: Query) -> dict[str, str | int]:
    # The continue token knows its version; naming one beside it is an error.
    return {k: v for k, v in query.items() if not k.startswith("resourceVersion")}
