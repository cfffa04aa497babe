"""
Connections that strangers cannot pile up: their number is bounded, and how long and how large the
head of a request may be.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

MOST_CONNECTIONS = 1024
"""An API server opens one for each admission that waits for us."""

MOST_HEAD_BYTES = 64 * 2**10
HEAD_SECONDS = 10.0


class BoundedProtocol(HttpToolsProtocol):
    """
    Ends a connection whose request's head does not come, or does not end.

    Where there are too many connections, one gives way that never brought a whole request, else
    the one that has been idle for the longest.
    """

    def __init__(self, *parts: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*parts, **named)
        self._head_bytes: int | None = 0
        self._head_timer: TimerHandle | None = None
        self._requests = 0
        self._since = time.monotonic()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # uvicorn's
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [
                each
                for each in self.connections
                if isinstance(each, BoundedProtocol) and each.is_idle()
            ]
            max(idle, key=BoundedProtocol.dispensable, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._since = time.monotonic()
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > MOST_HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._wait_for_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_wait()
        self._requests += 1
        super().on_headers_complete()

    def is_idle(self) -> bool:
        """
        Return whether nobody waits for an answer here.
        """
        return not self._requests or bool(self.cycle.response_complete)

    def dispensable(self) -> tuple[bool, float]:
        return self._requests == 0, -self._since

    def _wait_for_head(self) -> None:
        self._end_wait()
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _end_wait(self) -> None:
        self._head_bytes = None
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self.transport.abort()
