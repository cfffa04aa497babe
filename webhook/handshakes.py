"""
Connections that do not speak TLS yet, of which a bounded number is heard out.

A server of asyncio's counts nobody before the handshake is done, and waits a minute for each: a
crowd that does no more than connect would take all memory.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from webhook.connections import BoundedProtocol

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
