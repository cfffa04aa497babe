"""A broker that speaks STOMP as RabbitMQ does: queues, prefetch, and redelivery."""

import socket
import socketserver
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

LOOPBACK = "127.0.0.1"


@dataclass
class Queue:
    waiting: deque[tuple[dict[str, str], bytes]] = field(default_factory=deque)
    consumers: list["_Connection"] = field(default_factory=list)


class PlainBroker(socketserver.ThreadingTCPServer):
    """Use it as a context manager. `refuses` answers whoever connects with an error."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__((LOOPBACK, 0), _Connection)
        self.refuses = refuses
        self.lock = threading.RLock()
        self.queues: dict[str, Queue] = {}
        self.connections: set[socket.socket] = set()
        self._number = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.shutdown()
        self.server_close()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def queue(self, destination: str) -> Queue:
        return self.queues.setdefault(destination, Queue())

    def deliver(self, destination: str) -> None:
        """Hand out what waits to who has asked for more."""
        queue = self.queue(destination)
        for consumer in queue.consumers:
            while queue.waiting and len(consumer.unacknowledged) < consumer.at_once:
                headers, body = queue.waiting.popleft()
                self._number += 1
                consumer.take(destination, str(self._number), headers, body)


class _Connection(socketserver.StreamRequestHandler):
    server: PlainBroker

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)
        self.at_once = 1
        self.unacknowledged: dict[str, tuple[str, dict[str, str], bytes]] = {}

    def handle(self) -> None:
        while (head := self._head()) is not None:
            command, headers = head
            body = self.rfile.read(int(headers.get("content-length", 0)))
            self.rfile.read(1)
            with self.server.lock:
                self._answer(command, headers, body)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with self.server.lock:
            for queue in self.server.queues.values():
                if self in queue.consumers:
                    queue.consumers.remove(self)
            for destination, headers, body in self.unacknowledged.values():
                self.server.queue(destination).waiting.appendleft((headers | {"again": "y"}, body))
                self.server.deliver(destination)
        super().finish()

    def take(self, destination: str, number: str, headers: dict[str, str], body: bytes) -> None:
        self.unacknowledged[number] = destination, headers, body
        again = "true" if headers.get("again") else "false"
        told = {"destination": destination, "ack": number, "redelivered": again}
        self._write("MESSAGE", {**headers, **told}, body)

    def _head(self) -> tuple[str, dict[str, str]] | None:
        lines: list[str] = []
        while line := self.rfile.readline():
            text = line.decode().rstrip("\n")
            if text:
                lines.append(text)
            elif lines:
                return lines[0], dict(item.split(":", 1) for item in lines[1:])
        return None

    def _answer(self, command: str, headers: dict[str, str], body: bytes) -> None:
        destination = headers.get("destination", "")
        if command == "CONNECT":
            refused = self.server.refuses
            self._write("ERROR" if refused else "CONNECTED", {"message": "not you"}, b"")
        elif command == "SUBSCRIBE":
            self.at_once = int(headers["prefetch-count"])
            self.server.queue(destination).consumers.append(self)
            self.server.deliver(destination)
        elif command == "SEND":
            kept = {key: value for key, value in headers.items() if key != "destination"}
            self.server.queue(destination).waiting.append((kept, body))
            self.server.deliver(destination)
        elif command == "ACK":
            gone: tuple[Any, ...] | None = self.unacknowledged.pop(headers["id"], None)
            if gone is not None:
                self.server.deliver(gone[0])

    def _write(self, command: str, headers: dict[str, str], body: bytes) -> None:
        lines = [command, *(f"{key}:{value}" for key, value in headers.items())]
        try:
            self.wfile.write("\n".join(lines).encode() + b"\n\n" + body + b"\x00\n")
        except OSError:
            return
