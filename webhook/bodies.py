"""
Bodies on their way in, of which all together take a bounded part of memory.

An API server's body is whole within milliseconds. Strangers can begin many and end none: when room
runs short, whoever has kept the most of it for the longest gives way.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]

MOST_BODY_BYTES = 12 * 2**20  # etcd takes 1.5 MiB, of which every byte may be six in JSON
MOST_IN_FLIGHT_BYTES = 32 * 2**20
LARGE_BODY_BYTES = 32 * 2**10
BODY_SECONDS = 10.0
_TOO_SLOW, _TOO_LARGE, _CROWDED = 408, 413, 503
_MOMENT = 0.001


class BodyError(GpufenceError):
    """Raised for a body that will not be read to its end."""

    def __init__(self, status: int, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.reason = reason


class HungUpError(GpufenceError):
    """Raised when the caller hung up: there is nobody left to answer."""


class Body:
    """One body, as far as it has come."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.pieces: list[bytes] = []
        self.size = 0
        self.dropped = False


class Bodies:
    """
    All bodies that are being read or answered, and turns for those that take much to answer.

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
        self._large = asyncio.Lock()
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
        """Read a body to its end. Raises BodyError for one that shall not be, and HungUpError."""
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

    def turn(self, content: bytes) -> asyncio.Lock | None:
        """Return what a large body has to wait for before it is answered."""
        return self._large if len(content) > LARGE_BODY_BYTES else None

    async def _piece(self, body: Body, receive: Receive) -> bool:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HungUpError("the caller hung up")
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
