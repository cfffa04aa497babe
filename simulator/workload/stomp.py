"""
A small client of STOMP 1.2, which RabbitMQ speaks: enough to send messages and to work them off.

https://stomp.github.io/stomp-specification-1.2.html; header values with line ends or colons are not
escaped, since there are none here.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from simulator.workload.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping

_END: Final = b"\x00"
_CHUNK: Final = 65536
_CONNECT_SECONDS: Final = 10.0
_ONE_BY_ONE: Final = "client-individual"


class BrokerError(WorkloadError):
    """Raised where the broker refuses, or is gone."""


@dataclass(frozen=True, slots=True)
class Frame:
    command: str
    headers: Mapping[str, str]
    body: bytes


class StompClient:
    """One connection to the broker of a test, whose guest may do everything."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), _CONNECT_SECONDS)
        except OSError as error:
            raise BrokerError(f"no broker at {host}:{port}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        headers = {"accept-version": "1.2", "host": "/", "login": "guest", "passcode": "guest"}
        answer = None
        try:
            self._write("CONNECT", headers)
            answer = self.receive(_CONNECT_SECONDS)
        finally:
            if answer is None:
                self.close()
        if answer is None:
            raise BrokerError(f"the broker at {host}:{port} does not answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, queue: str, body: bytes, **headers: str) -> None:
        self._write("SEND", {"destination": f"/queue/{queue}", **headers}, body)

    def subscribe(self, queue: str, *, at_once: int = 1) -> None:
        """
        Get messages of a queue, which is made if it is not there, so many before one is
        acknowledged.
        """
        destination = f"/queue/{queue}"
        wanted = {"id": queue, "ack": _ONE_BY_ONE, "prefetch-count": str(at_once)}
        self._write("SUBSCRIBE", {"destination": destination, **wanted})

    def acknowledge(self, message: Frame) -> None:
        self._write("ACK", {"id": message.headers["ack"]})

    def receive(self, seconds: float) -> Frame | None:
        """Return the next frame, or nothing if none comes in time."""
        self._socket.settimeout(seconds)
        while (frame := self._next()) is None:
            try:
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                return None
            except OSError as error:
                raise BrokerError(f"the broker is gone: {error}") from error
            if not data:
                raise BrokerError("the broker has closed the connection")
            self._received += data
        if frame.command == "ERROR":
            raise BrokerError(f"the broker says: {frame.headers.get('message')}")
        return frame

    def _next(self) -> Frame | None:
        self._received = self._received.lstrip(b"\r\n")
        head, found, rest = self._received.partition(b"\n\n")
        if not found:
            return None
        command, *lines = head.decode().splitlines()
        headers = dict(line.split(":", 1) for line in lines)
        length = int(headers.get("content-length", -1))
        if length < 0:
            length = rest.find(_END)
        if length < 0 or len(rest) <= length:
            return None
        self._received = rest[length + 1 :]
        return Frame(command, headers, rest[:length])

    def _write(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        lines = [command, *(f"{key}:{value}" for key, value in headers.items())]
        if body:
            lines.append(f"content-length:{len(body)}")
        self._socket.settimeout(_CONNECT_SECONDS)
        try:
            self._socket.sendall("\n".join(lines).encode() + b"\n\n" + body + _END)
        except OSError as error:
            raise BrokerError(f"the broker is gone: {error}") from error
