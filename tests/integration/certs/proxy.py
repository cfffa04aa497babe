"""
A way to the API server that counts writes, and tells when the n-th has been carried out.

The one who wrote never hears of it: that is where a crash hurts most.
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.threads import PatientServer, Serving

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})


class Proxy(Serving):
    """
    Forwards plain HTTP on loopback to the API server, as the holder of a token.

    `after_write` is called with the number of each write once it is done, before it is answered; if
    it returns True the connection ends without an answer.
    """

    def __init__(
        self, server: str, trust: ssl.SSLContext, token: str, after_write: Callable[[int], bool]
    ) -> None:
        own = _Server(self)
        super().__init__(own)
        self.upstream = urlsplit(server)
        self.trust = trust
        self.token = token
        self.writes: list[str] = []
        self._after_write = after_write
        self._lock = threading.Lock()
        self.url = f"http://127.0.0.1:{own.server_port}"

    def is_last(self, method: str, path: str, status: int) -> bool:
        """
        Count what was written; tell whether the one who wrote is to hear nothing of it.
        """
        if method not in WRITES or status >= http.client.BAD_REQUEST:
            return False
        with self._lock:
            self.writes.append(path.rpartition("/")[2])
            return self._after_write(len(self.writes))


class _Server(PatientServer):
    def __init__(self, proxy: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.proxy = proxy


class _Exchange(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = ("Content-Type", "Accept")
        headers = {name: self.headers[name] for name in kept if self.headers[name]}
        upstream = http.client.HTTPSConnection(
            str(proxy.upstream.hostname), proxy.upstream.port, context=proxy.trust, timeout=30
        )
        try:
            token = {"Authorization": f"Bearer {proxy.token}"}
            upstream.request(self.command, self.path, body or None, headers | token)
            response = upstream.getresponse()
            content = response.read()
        finally:
            upstream.close()
        if proxy.is_last(self.command, self.path, response.status):
            self.close_connection = True
            return
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers["Content-Type"])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = forward  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        del format, args  # quiet
