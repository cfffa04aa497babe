"""
A way to the API server on which bytes are counted, as they are on the wire: TLS is between the two
ends of it.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Self

from tests.support.http_server import LOOPBACK

_CHUNK = 2**16


class Relay:
    """Use it as a context manager; `asked` and `answered` are bytes, handshakes included."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0
        self.asked = 0
        self.answered = 0
        self.connections = 0

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._connected, LOOPBACK, 0, backlog=1024)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        try:
            server, to_server = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            to_client.close()
            return
        self.connections += 1
        await asyncio.gather(
            self._hand_on(client, to_server, asking=True),
            self._hand_on(server, to_client, asking=False),
        )

    async def _hand_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asking: bool
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(_CHUNK):
                if asking:
                    self.asked += len(chunk)
                else:
                    self.answered += len(chunk)
                target.write(chunk)
                await target.drain()
        target.close()
