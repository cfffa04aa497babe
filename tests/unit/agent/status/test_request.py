"""
Heads of requests, whoever wrote them.
"""

from __future__ import annotations

from http import HTTPStatus

import pytest

from agent.status.request import MOST_BYTES, Reply, Request, read_request, said


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Request("GET", "/metrics")),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", Request("GET", "/metrics")),
        (b"HEAD / HTTP/1.1\n\n", Request("HEAD", "/")),
        (b"POST /metrics HTTP/1.1\r\n\r\nbody", Request("POST", "/metrics")),
        (b"", None),
        (b"GET /met", None),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
    ],
)
def test_a_head_is_read_once_it_is_whole(received: bytes, expected: Request | None) -> None:
    """
    Method and path are taken from a whole head, nothing from a part of one.
    """
    assert expected == read_request(received)


@pytest.mark.parametrize(
    "received",
    [
        b"\r\n",
        b"GET\r\n",
        b"GET  /metrics HTTP/1.1\r\n",
        b"get /metrics HTTP/1.1\r\n",
        b"GET http://host/metrics HTTP/1.1\r\n",
        b"GET /metrics HTTP/2\r\n",
        b"GET /\xff HTTP/1.1\r\n",
        b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\n",
    ],
)
def test_what_is_no_request_is_refused(received: bytes) -> None:
    """
    A first line that is none of ours is answered with 400 at once.
    """
    reply = read_request(received)

    assert isinstance(reply, Reply)
    assert HTTPStatus.BAD_REQUEST == reply.status


def test_a_head_without_end_is_refused() -> None:
    """
    Nobody may send more than a page of head.
    """
    reply = read_request(b"GET / HTTP/1.1\r\nX: " + b"a" * MOST_BYTES)

    assert isinstance(reply, Reply)
    assert HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE == reply.status


def test_a_reply_is_whole_and_final() -> None:
    """
    A reply says its length and that the connection ends; HEAD leaves the body away.
    """
    whole = said(HTTPStatus.OK, "ok").encoded()

    assert whole.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n")
    assert b"\r\nContent-Length: 3\r\n" in whole
    assert whole.endswith(b"Connection: close\r\n\r\nok\n")
    assert whole == said(HTTPStatus.OK, "ok").encoded(head_only=True) + b"ok\n"
