"""Taking an address to listen on, or saying which setting to change."""

from __future__ import annotations

import socket

from gpufence.errors import GpufenceError


class ListenError(GpufenceError):
    """Raised when an address cannot be listened on; the message names the setting."""


def listen(setting: str, address: tuple[str, int], backlog: int) -> socket.socket:
    """Take an address, before anything else is started; an empty host is every interface."""
    host, port = address
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=backlog, dualstack_ipv6=both
        )
    except OSError as error:
        raise ListenError(
            f"{setting}: cannot listen on {_shown(host, port)}: {error.strerror}; "
            "choose a free address"
        ) from error


def address_of(listener: socket.socket) -> str:
    """Write where a socket listens, as somebody would type it."""
    host, port, *_ = listener.getsockname()
    return _shown(host, port)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
