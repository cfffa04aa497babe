"""
From HTTP to a hook and back, in the terms of ASGI: the path that every admission takes.

The bodies on their way in all together take a bounded part of memory. An API server's body is whole
within milliseconds. Strangers can begin many and end none: when room runs short, the body that has
kept the most of it for the longest gives way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gpufence.errors import GpufenceError
from webhook.review import (
    NOBODY,
    BadReviewError,
    Reply,
    ReviewOutcome,
    ReviewResult,
    Subject,
    TooMuchError,
    read_review,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.metrics import Account
    from webhook.review import Expected, Review

    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 12 * 2**20  # etcd takes 1.5 MiB, of which every byte may be six in JSON
MOST_IN_FLIGHT_BYTES = 32 * 2**20
LARGE_BODY_BYTES = 32 * 2**10
BODY_SECONDS = 10.0
_OK, _BAD, _NOT_ALLOWED, _TOO_SLOW, _TOO_LARGE, _BUG, _CROWDED = 200, 400, 405, 408, 413, 500, 503
_MOMENT = 0.001
_AT_ONCE = nullcontext()


class BodyError(GpufenceError):
    """Raised for a body that will not be read to its end."""

    def __init__(self, status: int, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason


@dataclass(slots=True, eq=False)
class Body:
    """One body, as far as it has come."""

    began: float
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    dropped: bool = False


class Bodies:
    """
    All bodies that are being read or answered, and the turn of those that take much to answer.

    JSON takes up to twenty times its length when it is read, so of large bodies one is read at a
    time, while small ones pass.
    """

    def __init__(
        self,
        seconds: float = BODY_SECONDS,
        most_bytes: int = MOST_IN_FLIGHT_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._monotonic = monotonic
        self._unfinished: set[Body] = set()
        self.turn = asyncio.Lock()
        self.in_flight = 0

    @contextmanager
    def begun(self) -> Iterator[Body]:
        """Count a body for as long as it is read and answered."""
        body = Body(self._monotonic())
        self._unfinished.add(body)
        try:
            yield body
        finally:
            self._forget(body)

    async def read(self, body: Body, scope: Message, receive: Receive) -> bytes:
        """Read a body to its end. Raises BodyError for one that shall not be, or never comes."""
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > MOST_BODY_BYTES:
                raise _too_large()
        try:
            async with asyncio.timeout(self._seconds):
                while await self._piece(body, receive):
                    pass
        except TimeoutError as error:
            sentence = f"the body did not come within {self._seconds:g} s"
            raise BodyError(_TOO_SLOW, "slow-body", sentence) from error
        self._unfinished.discard(body)
        content = b"".join(body.pieces)
        body.pieces.clear()
        return content

    async def _piece(self, body: Body, receive: Receive) -> bool:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyError(_BAD, "gone", "the caller hung up before its body was whole")
        piece: bytes = message.get("body", b"")
        if not body.dropped:
            self._keep(body, piece)
        if body.dropped:
            raise BodyError(_CROWDED, "crowded", "more is on its way than there is room for")
        if body.size > MOST_BODY_BYTES:
            raise _too_large()
        return bool(message.get("more_body", False))

    def _keep(self, body: Body, piece: bytes) -> None:
        body.pieces.append(piece)
        body.size += len(piece)
        self.in_flight += len(piece)
        now = self._monotonic()
        while self.in_flight > self._most_bytes and self._unfinished:
            worst = max(self._unfinished, key=lambda each: each.size * (now - each.began + _MOMENT))
            worst.dropped = True
            self._forget(worst)

    def _forget(self, body: Body) -> None:
        self._unfinished.discard(body)
        self.in_flight -= body.size
        body.size = 0
        body.pieces.clear()


def _too_large() -> BodyError:
    return BodyError(_TOO_LARGE, "too-large", f"the body is larger than {MOST_BODY_BYTES} bytes")


_LEAVE = frozenset({413, 503})
_SORRY = b"internal error; the webhook's log tells more under request.uid\n"
_PIECE_BYTES = 64 * 2**10  # what is taken at a time from an answer, as its reader reads
_log = logging.getLogger(__name__)


class Hook(Protocol):
    """Whoever answers the reviews of one path."""

    expected: Expected

    async def answer(self, review: Review) -> Reply:
        """Answer one review. Raises BadReviewError for an object nobody can read."""
        ...

    def unread(self, uid: str, why: str) -> Reply:
        """Answer a review that is more work to read than any is worth."""
        ...


class Endpoint:
    """
    Serves hooks by path; `hooks` maps each whole path to its name and hook, and every other path
    is the application's behind it.

    While the server drains, each answer asks its caller to use another connection next time.
    """

    def __init__(
        self,
        app: App,
        hooks: Mapping[str, tuple[str, Hook]],
        account: Account,
        is_draining: Callable[[], bool],
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app = app
        self._hooks = hooks
        self._account = account
        self._is_draining = is_draining
        self._bodies = Bodies(body_seconds)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        found = self._hooks.get(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        if scope["method"] != "POST":
            await self._send(send, _NOT_ALLOWED, b"POST an AdmissionReview\n")
            return
        name, hook = found
        began = time.perf_counter()
        try:
            with self._bodies.begun() as body:
                content = await self._bodies.read(body, scope, receive)
                began = time.perf_counter()
                async with self._bodies.turn if len(content) > LARGE_BODY_BYTES else _AT_ONCE:
                    reply = await _answered(hook, content)
        except BodyError as error:
            reply = _rejected(error.status, error.reason, str(error))
        self._account(name, reply.outcome, time.perf_counter() - began)
        await self._send(send, reply.status, reply.body)

    async def _send(self, send: Send, status: int, body: bytes) -> None:
        kind = b"application/json" if status == _OK else b"text/plain; charset=utf-8"
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if self._is_draining() or status in _LEAVE:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for start in range(0, len(body) - _PIECE_BYTES, _PIECE_BYTES):
            piece = body[start : start + _PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        rest = body[(len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES :]
        await send({"type": "http.response.body", "body": rest})


async def _answered(hook: Hook, body: bytes) -> Reply:
    subject = NOBODY
    try:
        review = read_review(body, hook.expected)
        subject = review.subject
        return await hook.answer(review)
    except TooMuchError as error:
        return hook.unread(error.uid, error.sentence)
    except BadReviewError as error:
        return _rejected(_BAD, error.reason, error.sentence, error.uid)
    except Exception:  # noqa: BLE001 - whatever it is, the API server shall decide by its policy
        _log.exception(
            "a bug of ours; the review gets no answer", extra={"fields": {"uid": subject.uid}}
        )
        return Reply(_BUG, _SORRY, ReviewOutcome(ReviewResult.FAILED, subject, "bug"))


def _rejected(status: int, reason: str, sentence: str, uid: str = "") -> Reply:
    outcome = ReviewOutcome(ReviewResult.REJECTED, Subject(uid), reason, sentence)
    return Reply(status, f"{sentence}\n".encode(), outcome)
