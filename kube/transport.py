"""One HTTP request to the API server, whole or streamed; every way it can fail has one sentence."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError, SSLError
from urllib3.exceptions import TimeoutError as SlowAnswerError

from kube.access import Access
from kube.connections import Sockets, connect_pool, explain
from kube.credentials import Certificates, Trust
from kube.errors import BadReplyError, SilenceError, UnreachableError
from kube.replies import RawReply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to send. Headers hold the credentials and stay out of repr and of every message."""

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def line(self) -> str:
        """Name the request in errors; the query is left out, for selectors and tokens are long."""
        user = self.headers.get("Impersonate-User")
        return f"{self.method} {self.path}" + (f" (as {user})" if user else "")


@dataclass(frozen=True, slots=True)
class Patience:
    """
    How long to wait: for a connection, and for each next byte or, of `send`, the whole answer.
    """

    connect_seconds: float
    reply_seconds: float


class Stream:
    """The answer to a request that stays open; `status` is known, the body comes as it comes."""

    def __init__(self, request: Request, server: str, response: urllib3.BaseHTTPResponse) -> None:
        self._request = request
        self._server = server
        self._response = response
        self.status = response.status
        self.headers = response.headers

    def chunks(self) -> Iterator[bytes]:
        """
        Yield bytes as soon as there are any, until the server ends the answer properly.

        Raises UnreachableError when it breaks off, and SilenceError when nothing came for too long.
        """
        with _explained(self._request, self._server):
            try:
                while chunk := self._response.read1(_CHUNK_BYTES, decode_content=False):
                    yield chunk
            except SlowAnswerError as error:
                raise SilenceError(f"{self._request.line} at {self._server}: silence") from error

    def close(self) -> None:
        self._response.close()


class Transport:
    """The connections to one API server, for use by many threads."""

    def __init__(self, access: Access, pool_connections: int) -> None:
        self._access = access
        self._sockets = Sockets()
        self._pool = connect_pool(access, pool_connections, self._sockets)
        self.server_clock = AnswerClock()

    def send(self, request: Request, patience: Patience, most_bytes: int | None = None) -> RawReply:
        """
        Send and read the whole answer within the patience's seconds (twice that if it trickles).

        Raises UnreachableError when it does not come, or not wholly, and BadReplyError when it is
        longer than `most_bytes`.
        """
        with _explained(request, self._access.server):
            response = self._open(request, patience)
            try:
                until = time.monotonic() + patience.reply_seconds
                body = _read_until(request, response, until, most_bytes)
            except BaseException:
                response.close()  # half an answer is left in it: it must not be used again
                raise
            return RawReply(response.status, response.headers, body)

    def stream(self, request: Request, patience: Patience) -> Stream:
        """Send and hand out the answer's stream, which the caller closes."""
        with _explained(request, self._access.server):
            response = self._open(request, patience)
            return Stream(request, self._access.server, response)

    def abort(self) -> None:
        """Wake every thread that waits for the network here, for good: nothing is sent any more."""
        self._sockets.abort()

    def close(self) -> None:
        self._pool.clear()

    def _open(self, request: Request, patience: Patience) -> urllib3.BaseHTTPResponse:
        try:
            return self._request(request, patience)
        except SSLError:
            if self._access.trust is None or not self._access.trust.reload():
                raise
        except ProtocolError:
            # The server may close an idle connection in the instant in which we reuse it.
            if request.method != "GET":
                raise
        return self._request(request, patience)

    def _request(self, request: Request, patience: Patience) -> urllib3.BaseHTTPResponse:
        query = f"?{request.query}" if request.query else ""
        answer = self._pool.request(
            request.method,
            f"{self._access.server}{request.path}{query}",
            body=request.body,
            headers=request.headers,
            timeout=urllib3.Timeout(connect=patience.connect_seconds, read=patience.reply_seconds),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        self.server_clock.hear(answer.headers.get("date"))
        return answer


@contextmanager
def _explained(request: Request, server: str) -> Iterator[None]:
    try:
        yield
    except HTTPError as error:
        raise UnreachableError(f"{request.line} at {server}: {explain(error)}") from error


def _read_until(
    request: Request,
    response: urllib3.BaseHTTPResponse,
    deadline: float,
    most_bytes: int | None,
) -> bytes:
    body = bytearray()
    while chunk := response.read1(_CHUNK_BYTES, decode_content=False):
        body += chunk
        if most_bytes is not None and len(body) > most_bytes:
            raise BadReplyError(f"{request.line}: the answer is longer than {most_bytes} bytes")
        if time.monotonic() > deadline:
            raise SlowAnswerError("the answer is still coming in")
    return bytes(body)


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


class _Answered(NamedTuple):
    """What an answer said, and when it came by a clock that nobody sets."""

    date: str
    at: float


def boottime() -> float:
    """Return a time that goes on while this machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class AnswerClock:
    """
    Remembers the last answer. What time it is there now follows from how long ago that was, so that
    a clock that is set here shows at once, before the next answer.
    """

    def __init__(self) -> None:
        self._heard: _Answered | None = None

    def hear(self, date: str | None) -> None:
        if date:
            self._heard = _Answered(date, boottime())

    def ahead_seconds(self, now: float) -> float | None:
        """
        Return how far a time of this machine's clock is ahead of the API server's, to a second and
        the time that an answer takes; None where no answer has told.
        """
        heard = self._heard
        if heard is None:
            return None
        there = read_date(heard.date)
        return None if there is None else now - (there + boottime() - heard.at)


def read_date(text: str) -> float | None:
    """Read an answer's Date, in seconds since 1970; None where it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
