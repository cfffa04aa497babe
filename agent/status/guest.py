"""
One connection: a head is read, a reply is written, and the end is waited for.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final

from agent.status.request import MOST_BYTES, Reply, read_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.status.request import Request

STAY_SECONDS: Final = 5.0
"""
For reading its request and taking its reply, however slowly it does either.
"""
LEAVE_SECONDS: Final = 1.0
_CHUNK = 65536


class Guest:
    """
    `until` is when it has to be gone, however slowly it speaks or listens.
    """

    def __init__(
        self,
        connection: socket.socket,
        answer: Callable[[Request], Reply],
        clock: Callable[[], float],
        stay_seconds: float = STAY_SECONDS,
    ) -> None:
        self._connection = connection
        self._answer = answer
        self._clock = clock
        self._received = b""
        self._rest: memoryview | None = None
        self._leaving = False
        self.until = clock() + stay_seconds

    @property
    def is_answering(self) -> bool:
        return self._rest is not None

    def attend(self) -> bool:
        """
        Do what can be done without waiting; tell whether there is more to come.
        """
        with contextlib.suppress(BlockingIOError):
            if self._leaving:
                return bool(self._connection.recv(_CHUNK))
            if self._rest is None:
                return self._read()
            return self._write(self._rest)
        return True

    def _read(self) -> bool:
        chunk = self._connection.recv(MOST_BYTES)
        if not chunk:
            return False
        self._received += chunk
        found = read_request(self._received)
        if found is None:
            return True
        if isinstance(found, Reply):
            reply = found.encoded()
        else:
            reply = self._answer(found).encoded(head_only=found.method == "HEAD")
        self._rest = memoryview(reply)
        return self._write(self._rest)

    def _write(self, rest: memoryview) -> bool:
        """
        Write on; at the end say so, and let the other side close: closing first could cost it the
        reply.
        """
        rest = rest[self._connection.send(rest) :]
        self._rest = rest
        if not rest:
            self._rest = None
            self._leaving = True
            self._connection.shutdown(socket.SHUT_WR)
            self.until = min(self.until, self._clock() + LEAVE_SECONDS)
        return True
