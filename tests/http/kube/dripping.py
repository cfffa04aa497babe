"""A server whose answers never end."""

from collections.abc import Mapping

from tests.support.http_server import Exchange, HttpServer


class Dripping(HttpServer):
    """
    Sends its answer byte by byte, one at a time and each in time, from its head or its body on.
    """

    def __init__(self, headers: Mapping[str, str], *, head: bool) -> None:
        super().__init__()
        self._headers = headers
        self._head = head

    def handle(self, exchange: Exchange) -> None:
        if self._head:
            exchange.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        else:
            exchange.send_head(200, self._headers)
        while not self.over.wait(0.05):
            exchange.wfile.write(b"a")
            exchange.wfile.flush()
