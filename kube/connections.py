"""How connections to the API server are made and cut, and in words why they failed."""

from __future__ import annotations

import socket
import ssl
import threading
import weakref
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    InsecureRequestWarning,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as SlowError

from gpufence.text import printable
from kube.errors import AccessError

if TYPE_CHECKING:
    from kube.access import Access

_SHOWN_CHARACTERS = 200


class Sockets:
    """
    The live sockets of one pool, which another thread can cut: whoever waits on one stops at once.
    """

    def __init__(self) -> None:
        self._live: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._aborted = False

    def add(self, connection: HTTPConnection) -> None:
        """Take note of a connection that was just made; refuse it after `abort`."""
        # TLS inside TLS, through an HTTPS proxy, wraps the socket in an object of urllib3's own.
        live = getattr(connection.sock, "socket", connection.sock)
        with self._lock:
            if self._aborted:
                connection.close()
                raise ConnectionAbortedError("stopped")
            self._live.add(live)

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            live = list(self._live)
        for each in live:
            try:
                # Not SSLSocket.shutdown: it takes the TLS state away under the reading thread.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
            except OSError:
                continue  # closed already


def connect_pool(access: Access, connections: int, sockets: Sockets) -> urllib3.PoolManager:
    """Make a pool for one server whose connections are noted in `sockets`."""
    pool = _pool(access, connections)

    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.add(self)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            sockets.add(self)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    pool.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}
    return pool


def _pool(access: Access, connections: int) -> urllib3.PoolManager:
    options: dict[str, Any] = {"maxsize": connections}
    if access.trust is not None:
        options["ssl_context"] = access.trust.context
        options["server_hostname"] = access.server_name
        if not access.trust.context.check_hostname:
            urllib3.disable_warnings(InsecureRequestWarning)  # said once, when it was found
    if access.proxy is None:
        return urllib3.PoolManager(**options)
    proxy = urlsplit(access.proxy)
    if proxy.scheme not in {"http", "https"}:
        raise AccessError(
            f"proxy scheme {proxy.scheme!r} is not supported; name an http:// or https:// proxy, "
            "or list the API server in NO_PROXY"
        )
    if proxy.username is not None:
        login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        options["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=login)
    address = proxy._replace(netloc=proxy.netloc.rpartition("@")[2]).geturl()
    return urllib3.ProxyManager(address, **options)


def explain(error: HTTPError) -> str:
    """Describe an error of the HTTP library, which itself would print object addresses."""
    if isinstance(error, ProxyError):
        return f"through the proxy: {_cause(error.original_error)}"
    if isinstance(error, NameResolutionError):
        return "the server's name cannot be resolved; check the address and DNS"
    if isinstance(error, NewConnectionError):
        return f"{_cause(error.__cause__)}; is the server up, and the address right?"
    if isinstance(error, ConnectTimeoutError):
        return "no connection in time; is the server up, and may we reach it?"
    if isinstance(error, SlowError):
        return "no answer in time"
    if isinstance(error, SSLError):
        return _explain_tls(error)
    if isinstance(error, ProtocolError):
        return f"the connection broke off ({_cause(error)})"
    return f"{type(error).__name__}"


def _explain_tls(error: SSLError) -> str:
    cause = error.args[0] if error.args else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the server's certificate is not trusted: {cause.verify_message}; "
            "check the address and the CA file"
        )
    return f"TLS failed: {_cause(cause)}"


def _cause(error: object) -> str:
    while isinstance(error, HTTPError) and error.args and isinstance(error.args[-1], Exception):
        error = error.args[-1]
    text = str(error.strerror or error) if isinstance(error, OSError) else ""
    return printable(text, _SHOWN_CHARACTERS) or type(error).__name__
