"""An answer on a connection that is open already, from bytes that come in pieces of any length."""

import pytest
from urllib3.exceptions import ProtocolError
from urllib3.exceptions import TimeoutError as SlowAnswerError

from kube.exchange import OddAnswerError, PlainAnswer, written

COUNTED = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX-Kind: a\r\nX-Kind: b\r\n\r\nhello there"
CHUNKED = (
    b"HTTP/1.1 201 \r\ntransfer-encoding: chunked\r\n\r\n"
    b"6\r\nhello \r\n5;why=so\r\nthere\r\n0\r\nX-Trailer: 1\r\n\r\n"
)


class Wire:
    """A socket on which an answer comes in pieces."""

    def __init__(self, answer: bytes, size: int = 4096, error: OSError | None = None) -> None:
        self._pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
        self._error = error
        self.sent = b""
        self.ends: list[bool] = []

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def recv(self, most: int) -> bytes:
        del most
        if not self._pieces and self._error is not None:
            raise self._error
        return self._pieces.pop(0) if self._pieces else b""

    def answer(self) -> PlainAnswer:
        return PlainAnswer(self, b"GET", self.ends.append)  # type: ignore[arg-type]  # all it needs


def body(answer: PlainAnswer) -> bytes:
    pieces = []
    while piece := answer.read1(1, decode_content=False):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", [1, 2, 7, 4096])
@pytest.mark.parametrize(("text", "status"), [(COUNTED, 200), (CHUNKED, 201)])
def test_a_body_is_the_same_in_whatever_pieces_it_comes(
    text: bytes, status: int, size: int
) -> None:
    """Its end is known, so that the connection can be asked again."""
    wire = Wire(text, size)
    answer = wire.answer()

    assert (status, b"hello there") == (answer.status, body(answer))
    assert [True] == wire.ends


def test_headers_have_small_names() -> None:
    """One that comes twice has both its values."""
    assert "a, b" == Wire(COUNTED).answer().headers["x-kind"]


@pytest.mark.parametrize(
    "text",
    [
        COUNTED.replace(b"\r\nX-Kind: a", b"\r\nConnection: close"),
        COUNTED + b"and more",
    ],
    ids=["that is closed", "with something left"],
)
def test_a_connection_is_not_asked_again(text: bytes) -> None:
    """The server said so, or bytes are left that belong to no answer."""
    wire = Wire(text)

    assert b"hello there" == body(wire.answer())
    assert [False] == wire.ends


@pytest.mark.parametrize("text", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 \r\n\r\n"])
def test_some_answers_have_no_body(text: bytes) -> None:
    """Their status says so."""
    wire = Wire(text)

    assert b"" == body(wire.answer())
    assert [True] == wire.ends


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 200_000,
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
)
def test_what_is_not_understood_is_left_to_the_library(text: bytes) -> None:
    """Nothing of it is believed, and the connection is not asked again."""
    wire = Wire(text)

    with pytest.raises(OddAnswerError):
        wire.answer()

    assert [False] == wire.ends


@pytest.mark.parametrize(
    "text",
    [
        COUNTED[:-1],
        CHUNKED.replace(b"6\r\n", b"what\r\n"),
        CHUNKED.replace(b"6\r\n", b"2\r\n"),
        CHUNKED[:-2],
    ],
)
def test_half_a_body_is_an_error(text: bytes) -> None:
    """Whoever reads it closes the connection then."""
    wire = Wire(text)
    answer = wire.answer()

    with pytest.raises(ProtocolError):
        body(answer)
    answer.close()
    answer.close()

    assert [False] == wire.ends


def test_silence_is_slow_and_not_odd() -> None:
    """Who waited for as long as he wanted does not wait once more."""
    wire = Wire(b"", error=TimeoutError())

    with pytest.raises(SlowAnswerError):
        wire.answer()

    assert [False] == wire.ends


@pytest.mark.parametrize(
    ("error", "expected"),
    [(TimeoutError(), SlowAnswerError), (ConnectionResetError(), ProtocolError)],
)
def test_a_body_that_stops_is_the_librarys_own_error(
    error: OSError, expected: type[Exception]
) -> None:
    """Callers know its errors."""
    answer = Wire(COUNTED[:-5], error=error).answer()

    with pytest.raises(expected):
        body(answer)


def test_a_request_is_written_as_the_library_does() -> None:
    """Its target and headers as they are, and an encoding that needs no decoding."""
    expected = b"GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nAccept-Encoding: identity\r\nX: y\r\n\r\n"

    assert expected == written("/a?b=c", "h:1", {"X": "y"})


@pytest.mark.parametrize(
    ("target", "headers"),
    [("/a b", {}), ("/ä", {}), ("a", {}), ("/a", {"X": "y\r\nZ: 1"}), ("/a", {"X": "ü"})],
)
def test_what_cannot_be_written_plainly_is_left_to_the_library(
    target: str, headers: dict[str, str]
) -> None:
    """It says what is wrong, or knows how to write it."""
    assert written(target, "h", headers) is None
