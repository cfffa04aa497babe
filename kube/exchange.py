"""
A GET and its answer on a connection that is open already: who asks thousands of agents, or lists
ten thousands of pods, spends most of the time in the HTTP library's own objects.

Only what API servers answer day by day is understood. Of all else nothing is believed: the
connection is closed, and the library asks once more in its own way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from urllib3.exceptions import ProtocolError
from urllib3.exceptions import TimeoutError as SlowAnswerError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

_PIECE_BYTES: Final = 65_536
_LONGEST_HEAD_BYTES: Final = 65_536
_TARGET: Final = re.compile(r"/[!-~]*")
_VALUE: Final = re.compile(r"[ -~]*")
_STATUS: Final = re.compile(r"HTTP/1\.1 ([2-5]\d\d)(?: .*)?")
_LENGTH: Final = re.compile(r"\d{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_NO_BODY: Final = frozenset({204, 304})


class OddAnswerError(Exception):
    """Raised where no answer came that is understood here, and none of it has been handed out."""


def written(target: str, host: str, headers: Mapping[str, str]) -> bytes | None:
    """Write a GET; None where the library has to say what is wrong with it."""
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if not _TARGET.fullmatch(target) or not all(map(_VALUE.fullmatch, lines)):
        return None
    head = [f"GET {target} HTTP/1.1", f"Host: {host}", "Accept-Encoding: identity", *lines]
    return "\r\n".join([*head, "", ""]).encode("ascii")


class PlainAnswer:
    """
    An answer whose head is there: its status, its headers by small names, and its body as it comes.
    `done` is told, once, whether the connection may be asked again.

    Raises:
        OddAnswerError: nothing came, or something that is not understood.
        SlowAnswerError: nothing came for as long as the socket waits.
    """

    def __init__(self, sock: socket.socket, request: bytes, done: Callable[[bool], object]) -> None:
        self._sock = sock
        self._done: Callable[[bool], object] | None = done
        self._there = b""
        try:
            sock.sendall(request)
            self.status, self.headers = _head(self._until(b"\r\n\r\n"))
            self._pieces = self._body()
        except TimeoutError as error:
            self.close()
            raise SlowAnswerError("no answer in time") from error
        except (OSError, ProtocolError, UnicodeDecodeError) as error:
            self.close()
            raise OddAnswerError from error
        except BaseException:
            self.close()
            raise

    def read1(self, amt: int, *, decode_content: bool) -> bytes:
        """Return what comes next of the body, nothing at its end. The names are the library's."""
        del amt, decode_content
        try:
            return next(self._pieces, b"")
        except TimeoutError as error:
            raise SlowAnswerError("no answer in time") from error
        except OSError as error:
            raise ProtocolError("connection broken", error) from error

    def close(self) -> None:
        """Let the connection go, which is closed where something of the answer is left in it."""
        self._end(again=False)

    def _end(self, *, again: bool) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(again)

    def _body(self) -> Iterator[bytes]:
        again = self.headers.get("connection", "").lower() != "close"
        length = self.headers.get("content-length")
        chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        if self.status in _NO_BODY:
            return self._whole(iter(()), again=again)
        if chunked and length is None:
            return self._whole(self._chunks(), again=again)
        if length is None or not _LENGTH.fullmatch(length) or "transfer-encoding" in self.headers:
            raise OddAnswerError
        return self._whole(self._counted(int(length)), again=again)

    def _whole(self, pieces: Iterator[bytes], *, again: bool) -> Iterator[bytes]:
        yield from pieces
        self._end(again=again and not self._there)

    def _counted(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._there or self._more()
            self._there = piece[left:]
            if self._there:
                piece = piece[:left]
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            match = _CHUNK.fullmatch(self._until(b"\r\n"))
            if match is None:
                raise ProtocolError("a chunk without its length")
            length = int(match[1], 16)
            if not length:
                break
            yield from self._counted(length)
            if self._until(b"\r\n"):
                raise ProtocolError("a chunk longer than its length")
        while self._until(b"\r\n"):
            pass  # trailers

    def _until(self, end: bytes) -> bytes:
        while (at := self._there.find(end)) < 0:
            if len(self._there) > _LONGEST_HEAD_BYTES:
                raise ProtocolError("a line without an end")
            self._there += self._more()
        found, self._there = self._there[:at], self._there[at + len(end) :]
        return found

    def _more(self) -> bytes:
        piece = self._sock.recv(_PIECE_BYTES)
        if not piece:
            raise ProtocolError("connection broken", ConnectionResetError("it ended too early"))
        return piece


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    match = _STATUS.fullmatch(first)
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if match is None:
        raise OddAnswerError
    return int(match[1]), headers
