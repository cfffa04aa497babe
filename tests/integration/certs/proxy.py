"""
A way to the API server that counts writes, and tells when the n-th has been carried out.

The one who wrote never hears of it: that is where a crash hurts most.
"""

import http.client
import ssl
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.support.servers import Exchange, HttpServer

WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


class Proxy(HttpServer):
    """
    Forwards plain HTTP on loopback to the API server, as the holder of a token.

    `after_write` is called with the number of each write once it is done, before it is answered; if
    it returns True the connection ends without an answer.
    """

    def __init__(
        self, server: str, trust: ssl.SSLContext, token: str, after_write: Callable[[int], bool]
    ) -> None:
        super().__init__()
        self._upstream = urlsplit(server)
        self._trust = trust
        self._token = token
        self.writes: list[str] = []
        self._after_write = after_write
        self._lock = threading.Lock()

    def _is_last(self, method: str, path: str, status: int) -> bool:
        """Count what was written; return whether the one who wrote is to hear nothing of it."""
        if method not in WRITES or status >= http.client.BAD_REQUEST:
            return False
        with self._lock:
            self.writes.append(path.rpartition("/")[2])
            return self._after_write(len(self.writes))

    def handle(self, exchange: Exchange) -> None:
        kept = ("Content-Type", "Accept")
        headers = {name: exchange.headers[name] for name in kept if exchange.headers[name]}
        headers["Authorization"] = f"Bearer {self._token}"
        upstream = http.client.HTTPSConnection(
            str(self._upstream.hostname), self._upstream.port, context=self._trust, timeout=30
        )
        try:
            upstream.request(exchange.command, exchange.path, exchange.body or None, headers)
            response = upstream.getresponse()
            content = response.read()
        finally:
            upstream.close()
        if self._is_last(exchange.command, exchange.path, response.status):
            exchange.close_connection = True
            return
        kind = {"Content-Type": response.headers["Content-Type"]}
        exchange.answer(response.status, content, kind)
