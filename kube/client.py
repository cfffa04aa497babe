"""Raw requests to the API server: paths and dicts in, dicts or typed errors out."""

from __future__ import annotations

import json
import logging
import time
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import urlencode

from kube.access import find_access
from kube.errors import BadReplyError
from kube.lists import PAGE_SIZE, Listing, as_is, collect_pages, read_page
from kube.replies import RawReply, read_reply
from kube.transport import Patience, Request, Stream, Transport, read_date

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from kube.access import Access, ClientSettings
    from kube.lists import Page
    from kube.replies import JsonObject

T = TypeVar("T")
_log = logging.getLogger(__name__)
_LONGEST_REFUSAL_BYTES = 2**20

Query: TypeAlias = "Mapping[str, str | int]"


class PatchType(StrEnum):
    """The content types of a PATCH."""

    APPLY = "application/apply-patch+yaml"  # server-side, of which JSON is a part
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


def connect(settings: ClientSettings) -> Client:
    """
    Find the way to the cluster and make a client for it; nothing is sent yet.

    Raises AccessError that names what was looked for and what would help.
    """
    access = find_access(settings)
    if access.trust is not None and not access.trust.context.check_hostname:
        _log.warning(
            "the certificate of %s is NOT verified (insecure-skip-tls-verify in the kubeconfig): "
            "anybody in between can read and change everything",
            access.server,
        )
    return Client(access, settings)


class Client:
    """
    Speak to one API server, from any number of threads.

    Nothing is retried, but for two cases in which the server cannot have acted or acting twice
    changes nothing: once more after a 401 with fresh credentials, and a GET on a connection that
    broke. Everything else is the caller's to decide, by the class of the error.
    """

    def __init__(
        self, access: Access, settings: ClientSettings, transport: Transport | None = None
    ) -> None:
        self._access = access
        self._settings = settings
        self._transport = transport or Transport(access, settings.pool_connections)

    def __repr__(self) -> str:
        user = self._access.headers.get("Impersonate-User")
        return f"Client({self._access.server}" + (f", as {user})" if user else ")")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def namespace(self) -> str:
        """Name the namespace that a kubeconfig's context means; empty where it names none."""
        return self._access.namespace

    @property
    def clock_ahead_seconds(self) -> float | None:
        """Return how far this machine's clock is ahead of the API server's; None: not known yet."""
        return self._transport.server_clock.ahead_seconds(time.time())

    def text(
        self, path: str, query: Query | None = None, *, timeout_seconds: float | None = None
    ) -> str:
        """
        Read what is no object, such as the metrics of a pod through its proxy.

        Raises the same errors as `get` where somebody refuses.
        """
        request = replace(_request("GET", path, query), headers={"Accept": "*/*"})
        line, reply = self._ask(request, timeout_seconds)
        if reply.status != HTTPStatus.OK:
            read_reply(line, reply)
            raise BadReplyError(f"{line}: status {reply.status} comes without a text")
        return reply.body.decode("utf-8", "replace")

    def date(self) -> float | None:
        """Return what time the API server says it is, in seconds since 1970; any answer says it."""
        _, reply = self._ask(_request("GET", "/version", None), None)
        return read_date(reply.headers.get("date", ""))

    def get(
        self, path: str, query: Query | None = None, *, timeout_seconds: float | None = None
    ) -> JsonObject:
        return self._send(_request("GET", path, query), timeout_seconds)

    def post(
        self,
        path: str,
        body: JsonObject,
        query: Query | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> JsonObject:
        return self._send(_request("POST", path, query, body), timeout_seconds)

    def put(
        self,
        path: str,
        body: JsonObject,
        query: Query | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> JsonObject:
        return self._send(_request("PUT", path, query, body), timeout_seconds)

    def patch(
        self,
        path: str,
        body: JsonObject | Sequence[JsonObject],
        patch_type: PatchType = PatchType.JSON,
        query: Query | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> JsonObject:
        return self._send(_request("PATCH", path, query, body, patch_type), timeout_seconds)

    def delete(
        self,
        path: str,
        body: JsonObject | None = None,
        query: Query | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> JsonObject:
        """Delete an object; `body` is a DeleteOptions, best with a precondition on the uid."""
        return self._send(_request("DELETE", path, query, body), timeout_seconds)

    def list(
        self, path: str, query: Query | None = None, *, page_size: int = PAGE_SIZE
    ) -> Listing[JsonObject]:
        """List a whole collection, page by page."""
        return collect_pages(lambda asked: self.page(path, as_is, asked), path, query, page_size)

    def page(self, path: str, keep: Callable[[JsonObject], T], query: Query) -> Page[T]:
        """
        Read one answer to a list, keeping of each object what `keep` returns as soon as it is
        there. It may take as long as bytes come.

        Raises the same errors as `get` where the server refuses or what comes is no list.
        """
        silence = self._settings.reply_timeout_seconds
        with closing(self.stream(path, query, silence_seconds=silence)) as stream:
            return read_page(f"GET {path}", stream.chunks(), keep)

    def stream(self, path: str, query: Query, *, silence_seconds: float) -> Stream:
        """
        Open a watch; no byte for `silence_seconds` ends its chunks with a SilenceError.

        Raises the same errors as `get` where the server refuses.
        """
        patience = Patience(self._settings.connect_timeout_seconds, silence_seconds)
        request = self._signed(_request("GET", path, query))
        stream = self._transport.stream(request, patience)
        if stream.status == HTTPStatus.UNAUTHORIZED and self._access.credentials.renew():
            stream.close()
            stream = self._transport.stream(self._signed(request), patience)
        if stream.status == HTTPStatus.OK:
            return stream
        read_reply(request.line, RawReply(stream.status, stream.headers, _read_refusal(stream)))
        raise BadReplyError(f"{request.line}: status {stream.status} is no answer to a watch")

    def impersonating(self, user: str) -> Client:
        """
        Act as another user over the same connections; who may do that is RBAC's to say.

        Only the user is sent: with a group header beside it, constrained impersonation of a node
        would be refused.
        """
        access = replace(self._access, headers={"Impersonate-User": user})
        return Client(access, self._settings, self._transport)

    def dedicated(self) -> Client:
        """
        Do the same over one connection of its own, which `abort` can cut without hurting others.
        """
        return Client(self._access, replace(self._settings, pool_connections=1))

    def abort(self) -> None:
        """Wake every thread that waits for an answer here; the client is of no use afterwards."""
        self._transport.abort()

    def close(self) -> None:
        """Close the idle connections; the client may still be used and then opens new ones."""
        self._transport.close()

    def _send(self, request: Request, timeout_seconds: float | None) -> JsonObject:
        return read_reply(*self._ask(request, timeout_seconds))

    def _ask(self, request: Request, timeout_seconds: float | None) -> tuple[str, RawReply]:
        default = self._settings.reply_timeout_seconds
        patience = Patience(
            self._settings.connect_timeout_seconds,
            default if timeout_seconds is None else timeout_seconds,
        )
        request = self._signed(request)
        most = self._settings.longest_reply_bytes
        reply = self._transport.send(request, patience, most)
        if reply.status == HTTPStatus.UNAUTHORIZED and self._access.credentials.renew():
            reply = self._transport.send(self._signed(request), patience, most)
        return request.line, reply

    def _signed(self, request: Request) -> Request:
        headers = {
            "Accept": "application/json",
            "User-Agent": self._settings.user_agent,
            **request.headers,
            **self._access.headers,
        }
        authorization = self._access.credentials.header()
        if authorization is not None:
            headers["Authorization"] = authorization
        return replace(request, headers=headers)


def _read_refusal(stream: Stream) -> bytes:
    body = bytearray()
    try:
        for chunk in stream.chunks():
            body += chunk
            if len(body) > _LONGEST_REFUSAL_BYTES:
                break
    finally:
        stream.close()
    return bytes(body)


def _request(
    method: str,
    path: str,
    query: Query | None,
    body: JsonObject | Sequence[JsonObject] | None = None,
    content_type: str = "application/json",
) -> Request:
    if body is None:
        return Request(method=method, path=path, query=urlencode(query or {}))
    return Request(
        method=method,
        path=path,
        query=urlencode(query or {}),
        body=json.dumps(body, separators=(",", ":")).encode(),
        headers={"Content-Type": content_type},
    )
