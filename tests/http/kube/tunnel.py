"""What a proxy does with CONNECT, as company networks have them: pass bytes on, unread."""

import socket
import threading

from tests.support.http_server import Exchange

_CHUNK_BYTES = 65_536


def tunnel(exchange: Exchange) -> None:
    """Answer a CONNECT; whatever host it names, the bytes lead to that port of this machine."""
    port = int(exchange.path.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as upstream:
        exchange.send_head(200, {})
        back = threading.Thread(target=_pump, args=(upstream, exchange.connection), daemon=True)
        back.start()
        _pump(exchange.connection, upstream)
        back.join(5)
    exchange.close_connection = True


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
