"""
Lists, page by page, so that a large collection never stands in memory whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kube.errors import BadReplyError, GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kube.objects import JsonObject

T = TypeVar("T")

PAGE_SIZE = 500
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """
    All objects of a collection as they were at one moment; a watch continues from its version.
    """

    resource_version: str
    items: list[T]


def collect(
    get: Callable[[str, Mapping[str, str | int]], JsonObject],
    path: str,
    keep: Callable[[JsonObject], T],
    query: Mapping[str, str | int] | None = None,
    page_size: int = PAGE_SIZE,
) -> Listing[T]:
    """
    Read every page with `get`, project each object with `keep` at once, forget the rest.

    A page size of 0 asks for everything in one answer. When the server has forgotten the list
    before its last page (410), it begins anew: pages of two lists do not mix. Objects in a list
    carry neither kind nor apiVersion.
    """
    first = {**(query or {}), **({"limit": page_size} if page_size else {})}
    for attempt in range(1, _ATTEMPTS + 1):
        page = get(path, first)
        items: list[T] = []
        try:
            while token := _take(page, path, keep, items):
                del page  # before the next one is read: two pages at once would double the peak
                page = get(path, {**_without_version(first), "continue": token})
        except GoneError:
            if attempt == _ATTEMPTS:
                raise
            continue
        return Listing(_metadata(page, path, "resourceVersion"), items)
    raise AssertionError("the last attempt returns or raises")


def _take(page: JsonObject, path: str, keep: Callable[[JsonObject], T], items: list[T]) -> str:
    listed = page.get("items")
    if listed is None and str(page.get("kind", "")).endswith("List"):
        listed = []  # Go writes an empty list as null
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise BadReplyError(f"GET {path}: the answer is no list of objects")
    items += map(keep, listed)
    page["items"] = []
    return _metadata(page, path, "continue", default="")


def _metadata(page: JsonObject, path: str, name: str, default: str | None = None) -> str:
    metadata = page.get("metadata")
    value = metadata.get(name, default) if isinstance(metadata, dict) else default
    if not isinstance(value, str):
        raise BadReplyError(f"GET {path}: the list has no metadata.{name}")
    return value


def _without_version(query: Mapping[str, str | int]) -> dict[str, str | int]:
    # The continue token knows its version; naming one beside it is an error.
    return {k: v for k, v in query.items() if not k.startswith("resourceVersion")}
