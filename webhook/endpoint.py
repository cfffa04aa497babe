"""
From HTTP to a hook and back, in the terms of ASGI: the path that every admission takes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gpufence.errors import GpufenceError
from webhook.outcome import NOBODY, Reply, ReviewOutcome, ReviewResult, Subject
from webhook.review import BadReviewError, read_review

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping

    from webhook.metrics import Account
    from webhook.review import Expected, Review

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BODY_BYTES = 8 * 2**20  # the API server takes objects of 3 MiB and sends them once
BODY_SECONDS = 10.0
_OK, _BAD, _NOT_ALLOWED, _TOO_SLOW, _TOO_LARGE, _BUG = 200, 400, 405, 408, 413, 500
_SORRY = b"internal error; the webhook's log tells more under request.uid\n"
_log = logging.getLogger(__name__)


class Hook(Protocol):
    """
    Whoever answers the reviews of one path.
    """

    expected: Expected

    async def answer(self, review: Review) -> Reply:
        """
        Answer one review. Raises BadReviewError for an object nobody can read.
        """
        ...


class _BodyError(GpufenceError):
    """
    Raised for a body that will not be read to its end.
    """

    def __init__(self, status: int, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason


class _GoneError(GpufenceError):
    """
    Raised when the caller hung up: there is nobody left to answer.
    """


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
        self._body_seconds = body_seconds

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
            body = await _read_body(scope, receive, self._body_seconds)
            began = time.perf_counter()
            reply = await _answered(hook, body)
        except _BodyError as error:
            reply = _rejected(error.status, error.reason, str(error))
        except _GoneError:
            reply = _rejected(_BAD, "gone", "the caller hung up before its body was whole")
        self._account(name, reply.outcome, time.perf_counter() - began)
        await self._send(send, reply.status, reply.body)

    async def _send(self, send: Send, status: int, body: bytes) -> None:
        kind = b"application/json" if status == _OK else b"text/plain; charset=utf-8"
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
        if self._is_draining() or status == _TOO_LARGE:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _answered(hook: Hook, body: bytes) -> Reply:
    subject = NOBODY
    try:
        review = read_review(body, hook.expected)
        subject = review.subject
        return await hook.answer(review)
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


async def _read_body(scope: Message, receive: Receive, seconds: float) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > MOST_BODY_BYTES:
            raise _too_large()
    try:
        async with asyncio.timeout(seconds):
            return await _all_of(receive)
    except TimeoutError as error:
        sentence = f"the body did not come within {seconds:g} s"
        raise _BodyError(_TOO_SLOW, "slow-body", sentence) from error


async def _all_of(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError("the caller hung up")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MOST_BODY_BYTES:
            raise _too_large()
        more = message.get("more_body", False)
    return b"".join(pieces)


def _too_large() -> _BodyError:
    return _BodyError(_TOO_LARGE, "too-large", f"the body is larger than {MOST_BODY_BYTES} bytes")
