"""
Connections, of which a bounded number is heard out: those that do not speak TLS yet, those whose
request does not come or end, and those whose answer nobody reads.

A server of asyncio's counts no connection before its handshake is done, and waits a minute for
each: a crowd that does no more than connect would take all memory.
"""

from __future__ import annotations

import asyncio
import socket
import time
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpufence.errors import GpufenceError

if TYPE_CHECKING:
    import ssl
    from asyncio import TimerHandle, Transport
    from collections.abc import Callable

MOST_CONNECTIONS = 320
"""An API server opens one for each admission that waits for us. Each takes 50 to 180 KiB."""

LARGE_BYTES = 32 * 2**10
MOST_LARGE = 64
"""
Connections on which more than LARGE_BYTES came at a time: each takes up to 400 KiB, since the
buffers of its TLS stay as large as that.
"""

MOST_HEAD_BYTES = 16 * 2**10
HEAD_SECONDS = 10.0
MOST_UNREAD = 8
"""Large answers that wait for their readers: those of an API server, which reads at once, pass."""

ANSWER_SECONDS = 10.0


class UnwelcomeError(GpufenceError):
    """Raised where a connection has been ended, so that nothing more of it is read."""


class BoundedProtocol(HttpToolsProtocol):
    """
    Ends a connection whose request's head does not come, or does not end, or whose answer is not
    read.

    Where there are too many connections, another gives way to the newest: one that never brought a
    whole request, else the one that has been idle for the longest.
    """

    def __init__(self, *parts: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*parts, **named)
        self._head_bytes: int | None = 0
        self._head_timer: TimerHandle | None = None
        self._unread_timer: TimerHandle | None = None
        self._requests = 0
        self.large = False
        self._since = self.unread_since = time.monotonic()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # uvicorn's
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) > MOST_CONNECTIONS:
            self._end_idlest(self._all(), otherwise=self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of every timer: each would keep the connection's buffers until it fires."""
        self._end_wait()
        self._end_unread_wait()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def forget(self) -> None:
        """
        Let go of what knows us, where there never was a connection: nobody collects garbage here.
        """
        self.parser = None  # type: ignore[assignment] # as uvicorn does when a connection is lost

    def data_received(self, data: bytes) -> None:
        self._since = time.monotonic()
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        if len(data) > LARGE_BYTES and not self.large:
            self._become_large()
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > MOST_HEAD_BYTES:
            self.transport.abort()

    def on_message_begin(self) -> None:
        if not self.is_idle() or self.transport.get_write_buffer_size():
            self._show_the_door("asks before it has read")
        self._wait_for_head()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_timer is None:
            self._show_the_door("goes on with headers after its body")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_wait()
        self._requests += 1
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread_since = time.monotonic()
        self._end_unread_wait()
        self._unread_timer = self.loop.call_later(ANSWER_SECONDS, self._give_up)
        waiting = [each for each in self._all() if each.flow.write_paused]
        if len(waiting) > MOST_UNREAD:
            min(waiting, key=attrgetter("unread_since")).transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_unread_wait()

    def is_idle(self) -> bool:
        """Return whether nobody waits for an answer here."""
        return not self._requests or bool(self.cycle.response_complete)

    def dispensable(self) -> tuple[bool, float]:
        return self._requests == 0, -self._since

    def _all(self) -> list[BoundedProtocol]:
        return [each for each in self.connections if isinstance(each, BoundedProtocol)]

    def _become_large(self) -> None:
        self.large = True
        large = [each for each in self._all() if each.large]
        if len(large) > MOST_LARGE:
            self._end_idlest(large)  # of those that are not, `endpoint.Bodies` bounds the bodies

    def _end_idlest(
        self, among: list[BoundedProtocol], otherwise: BoundedProtocol | None = None
    ) -> None:
        idle = [each for each in among if each is not self and each.is_idle()]
        ended = max(idle, key=BoundedProtocol.dispensable, default=otherwise)
        if ended is not None:
            ended.transport.abort()

    def _show_the_door(self, why: str) -> None:
        self.transport.abort()
        raise UnwelcomeError(f"a connection that {why} is ended")

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

    def _end_unread_wait(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


MOST_HANDSHAKES = 256
HANDSHAKE_SECONDS = 10.0
_BACKLOG = 1024
_NO_ROOM_SECONDS = 0.05


class Handshakes:
    """
    Accepts connections on a socket, and hands each to a protocol of its own once TLS is there;
    where too many are under way, the one that takes the longest gives way.

    To uvicorn it is a server of asyncio's.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        speaker: Callable[[], BoundedProtocol],
    ) -> None:
        self._listener = listener
        self._context = context
        self._speaker = speaker
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._accepting: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._listener.setblocking(False)  # noqa: FBT003 - the socket's own way
        self._listener.listen(_BACKLOG)
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept nobody any more; who is under way may come to its end."""
        if self._accepting is not None:
            self._accepting.cancel()

    async def wait_closed(self) -> None:
        for each in list(self._under_way):
            each.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:  # no file left, or gone before it was taken
                await asyncio.sleep(_NO_ROOM_SECONDS)
                continue
            task = asyncio.create_task(self._shake(connection))
            self._under_way[task] = None
            task.add_done_callback(self._forget)
            if len(self._under_way) > MOST_HANDSHAKES:
                oldest = next(iter(self._under_way))
                self._forget(oldest)
                oldest.cancel()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)

    async def _shake(self, connection: socket.socket) -> None:
        speaker = self._speaker()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: speaker,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except (OSError, asyncio.CancelledError):
            speaker.forget()
            connection.close()
