"""A page of a program at an address of its own: past any proxy, and whole within its time."""

from __future__ import annotations

import threading
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from kube.access import Access
from kube.errors import BadReplyError, UnreachableError
from kube.tls import Certificates, Trust
from kube.transport import Patience, Request, Transport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube.replies import RawReply

_HEADERS: Final = {"User-Agent": "gpufence"}


def fetch_page(
    url: str,
    timeout_seconds: float,
    most_bytes: int,
    query: Mapping[str, str | int] | None = None,
) -> str:
    """
    Read a page, however slowly its bytes come.

    Raises:
        UnreachableError: it does not come whole and in time.
        BadReplyError: the server refuses, or sends more than `most_bytes`.
    """
    at = urlsplit(url)
    trust = Trust(Certificates()) if at.scheme == "https" else None
    access = Access(server=f"{at.scheme}://{at.netloc}", trust=trust)
    request = Request(method="GET", path=at.path, query=urlencode(query or {}), headers=_HEADERS)
    with closing(Transport(access, pool_connections=1)) as transport:
        reply = _send_within(timeout_seconds, transport, request, most_bytes)
    if reply.status != HTTPStatus.OK:
        raise BadReplyError(f"{request.line} at {access.server}: status {reply.status}")
    return reply.body.decode("utf-8", "replace")


def _send_within(
    seconds: float, transport: Transport, request: Request, most_bytes: int
) -> RawReply:
    """Send and read the answer; Patience is for each byte of its head, and one may drip."""
    over = threading.Event()
    late = f"{request.line}: no whole answer in {seconds:g} s"
    end = threading.Timer(seconds, _cut, (transport, over))
    end.start()
    try:
        reply = transport.send(request, Patience(seconds, seconds), most_bytes)
    except UnreachableError as error:
        if over.is_set():
            raise UnreachableError(late) from error
        raise
    finally:
        end.cancel()
    if over.is_set():
        raise UnreachableError(late)  # without a length, what was cut looks whole
    return reply


def _cut(transport: Transport, over: threading.Event) -> None:
    over.set()
    transport.abort()
