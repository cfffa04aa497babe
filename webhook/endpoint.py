"""From HTTP to a hook and back, in the terms of ASGI: the path that every admission takes."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol, TypeAlias

from webhook.bodies import BODY_SECONDS, Bodies, BodyError, HungUpError
from webhook.outcome import NOBODY, Reply, ReviewOutcome, ReviewResult, Subject
from webhook.review import BadReviewError, TooMuchError, read_review

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from webhook.bodies import Message, Receive
    from webhook.metrics import Account
    from webhook.review import Expected, Review

    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

_OK, _BAD, _NOT_ALLOWED, _BUG = 200, 400, 405, 500
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
                turn = self._bodies.turn(content)
                if turn is None:
                    reply = await _answered(hook, content)
                else:
                    async with turn:
                        reply = await _answered(hook, content)
        except BodyError as error:
            reply = _rejected(error.status, error.reason, str(error))
        except HungUpError:
            reply = _rejected(_BAD, "gone", "the caller hung up before its body was whole")
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
