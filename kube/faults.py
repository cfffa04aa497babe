"""
Say in words a person can act on why a connection failed.
"""

from __future__ import annotations

import ssl

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as SlowError

from gpufence.text import printable

_SHOWN_CHARACTERS = 200


def explain(error: HTTPError) -> str:
    """
    Describe an error of the HTTP library, which itself would print object addresses.
    """
    if isinstance(error, ProxyError):
        return f"through the proxy: {_cause(error.original_error)}"
    if isinstance(error, NameResolutionError):
        return "the server's name cannot be resolved; check the address and DNS"
    if isinstance(error, NewConnectionError):
        return f"{_cause(error.__cause__)}; is the API server up, and the address right?"
    if isinstance(error, ConnectTimeoutError):
        return "no connection in time; is the API server up, and may we reach it?"
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
