"""
PURE. As much of HTTP/1 as three pages need: the head of a request, and a whole reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

MOST_BYTES: Final = 8192
PLAIN: Final = "text/plain; charset=utf-8"

_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,2000}) HTTP/1\.[01]")


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Reply:
    """
    What is sent back; the connection ends with it.
    """

    status: HTTPStatus
    body: bytes = b""
    content_type: str = PLAIN

    def encoded(self, *, head_only: bool = False) -> bytes:
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode("ascii") + (b"" if head_only else self.body)


def said(status: HTTPStatus, text: str) -> Reply:
    """
    Answer with one line of text.
    """
    return Reply(status, f"{text}\n".encode())


def read_request(received: bytes) -> Request | Reply | None:
    """
    Read what has come so far: None until the head is whole, a reply where it cannot be answered.

    A body is of no interest and is never waited for.
    """
    line, ended, _ = received.partition(b"\n")
    match = _LINE.fullmatch(line.removesuffix(b"\r"))
    if ended and match is None:
        return said(HTTPStatus.BAD_REQUEST, "this is no HTTP/1 request for a path")
    if match is not None and (b"\r\n\r\n" in received or b"\n\n" in received):
        path = match[2].partition(b"?")[0]
        return Request(match[1].decode("ascii"), path.decode("ascii"))
    if len(received) >= MOST_BYTES:
        return said(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too large")
    return None
