"""Every way a connection can fail has words for a person."""

import ssl

import pytest
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    HTTPError,
    ProtocolError,
    ProxyError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as SlowError

from kube.connections import explain


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ConnectTimeoutError("x"),
            "no connection in time; is the server up, and may we reach it?",
        ),
        (SlowError("x"), "no answer in time"),
        (SSLError(ssl.SSLError(1, "wrong version number")), "TLS failed: wrong version number"),
        (
            ProtocolError("x", ConnectionResetError(104, "Connection reset by peer")),
            "the connection broke off (Connection reset by peer)",
        ),
        (ProtocolError("x"), "the connection broke off (ProtocolError)"),
        (ProxyError("x", OSError("Tunnel\nfailed")), "through the proxy: Tunnel?failed"),
        (ProxyError("x", OSError()), "through the proxy: OSError"),
        (DecodeError("<object at 0x7f>"), "DecodeError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HTTPError) else str(value),
)
def test_failures_are_told_apart(error: HTTPError, expected: str) -> None:
    """The words name what to look at, without addresses of objects."""
    assert expected == explain(error)
