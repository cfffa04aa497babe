"""
What stands under which path.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from agent.status.request import Reply, said

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.status.request import Request

JSON: Final = "application/json"
REMEMBERED_SECONDS: Final = 0.25

_METHODS = frozenset({"GET", "HEAD"})


class Page:
    """
    A page that costs something to make: it is made at most a few times a second, whoever asks.
    """

    def __init__(
        self, content_type: str, make: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self._content_type = content_type
        self._make = make
        self._clock = clock
        self._made_at: float | None = None
        self._reply = Reply(HTTPStatus.OK)

    def __call__(self) -> Reply:
        now = self._clock()
        if self._made_at is None or not 0.0 <= now - self._made_at < REMEMBERED_SECONDS:
            self._reply = Reply(HTTPStatus.OK, self._make().encode(), self._content_type)
            self._made_at = now
        return self._reply


def health_page(trouble: Callable[[], str]) -> Callable[[], Reply]:
    """
    Answer a liveness probe: with the trouble that only a restart would cure, if there is one.
    """

    def health() -> Reply:
        found = trouble()
        status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
        return said(status, found or "ok")

    return health


def answer(request: Request, pages: Mapping[str, Callable[[], Reply]]) -> Reply:
    """
    Find the page that a request asks for.
    """
    page = pages.get(request.path)
    if page is None:
        return said(HTTPStatus.NOT_FOUND, f"there are {', '.join(sorted(pages))}")
    if request.method not in _METHODS:
        return said(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered")
    return page()
