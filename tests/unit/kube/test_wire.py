"""What goes over the wire: paths, lines, replies, and words for what fails."""

import json
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

from kube import core, group
from kube.connections import explain
from kube.errors import BadReplyError, GoneError, KubeError, ServerError
from kube.replies import RawReply, read_reply
from kube.watch import LineCutter, LineTooLongError, read_change


def test_paths_of_both_kinds_of_groups() -> None:
    """The core group and the named ones have their own roots."""
    assert "/api/v1/namespaces/team-a/pods/p/eviction" == core(
        "namespaces", "team-a", "pods", "p", "eviction"
    )
    assert "/apis/apps/v1/deployments" == group("apps/v1", "deployments")


def test_odd_characters_are_quoted() -> None:
    """A port of a proxied pod stays readable; a question mark starts no query."""
    assert "/api/v1/pods/p:8080/a%3Fb%20%C3%BC" == core("pods", "p:8080", "a?b ü")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_names_that_would_change_the_path_are_refused(name: str) -> None:
    """No name leads out of its place."""
    with pytest.raises(ValueError, match="cannot be a name in a Kubernetes path"):
        core("namespaces", name)


def test_blank_lines_are_left_out() -> None:
    """Keep-alive blanks between lines mean nothing."""
    assert [b"a", b"b"] == LineCutter(10).feed(b"\n\na\n \r\nb\n")


def test_the_rest_is_what_has_no_end() -> None:
    """A line that was begun is kept apart."""
    cutter = LineCutter(10)
    cutter.feed(b"a\nbc")

    assert b"bc" == cutter.rest


@pytest.mark.parametrize("data", [b"12345678901", b"12345678901\n", b"1\n12345678901\n2\n"])
def test_a_line_beyond_the_limit_is_refused(data: bytes) -> None:
    """The limit holds for whole lines and for begun ones."""
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        LineCutter(10).feed(data)


def test_a_line_of_the_limit_passes() -> None:
    """The limit itself is allowed."""
    assert [b"1234567890"] == LineCutter(10).feed(b"1234567890\n")


def test_nesting_without_end_is_a_bad_reply() -> None:
    """Nor does a body that is nested beyond what the parser bears."""
    deep = b'{"a":' * 100_000

    with pytest.raises(BadReplyError):
        read_reply("GET /x", RawReply(200, {}, deep))
    with pytest.raises(BadReplyError):
        read_change("GET /x", deep)


@pytest.mark.parametrize(
    ("code", "expected"), [(410, GoneError), (None, ServerError), (200, ServerError)]
)
def test_error_lines_keep_their_code(code: int | None, expected: type[KubeError]) -> None:
    """An ERROR line means its Status' code, and trouble of the server where that makes no sense."""
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code}}).encode()

    with pytest.raises(expected):
        read_change("GET /x", line)


def test_a_status_that_nobody_knows_is_an_error_all_the_same() -> None:
    """A number that HTTP does not know is told as it came."""
    with pytest.raises(KubeError, match="599 Unknown"):
        read_reply("GET /x", RawReply(599, {}, b""))


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
