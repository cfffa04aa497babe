"""The pages of a program, where it listens, and how it ends."""

import http.client
import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest

from service.listen import ListenError, address_of, listen
from service.status_server import (
    BACKLOG,
    MOST_CONNECTIONS,
    CachedPage,
    PageQuestion,
    StatusReply,
    StatusServer,
    text_reply,
)
from tests.support.observing import eventually

LOOPBACK = "127.0.0.1"
NOBODYS = "2001:db8::1"  # for documentation only (RFC 3849), with IPv6 or without
PATIENCE_SECONDS = 20.0


def test_a_free_address_is_taken_and_shown() -> None:
    """A listener tells its address as one would type it, with the port that the kernel chose."""
    with listen("STATUS", (LOOPBACK, 0), 1) as listener:
        number = listener.getsockname()[1]

        assert f"{LOOPBACK}:{number}" == address_of(listener)


def test_a_taken_address_is_told() -> None:
    """Listening where somebody else listens names the setting and the address."""
    with listen("STATUS", (LOOPBACK, 0), 1) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"STATUS: cannot listen on {LOOPBACK}:{number}"):
            listen("STATUS", (LOOPBACK, number), 1)


def test_every_interface_is_both_families() -> None:
    """An empty host takes IPv4 and, where there is one, IPv6."""
    with listen("STATUS", ("", 0), 1) as listener:
        number = listener.getsockname()[1]
        with socket.create_connection((LOOPBACK, number), timeout=PATIENCE_SECONDS):
            pass


def test_an_ipv6_address_stands_in_brackets() -> None:
    """The colons of an IPv6 address cannot be taken for the one before the port."""
    with pytest.raises(ListenError, match=r"STATUS: cannot listen on \[2001:db8::1\]:9: "):
        listen("STATUS", (NOBODYS, 9), 1)


SCRIPT = """
import sys
from dataclasses import dataclass

from gpufence.errors import GpufenceError
from service import program
from service.command import exit_code
from service.status_server import HTTPStatus, text_reply


class Small:
    pages = {"/healthz": lambda: text_reply(HTTPStatus.OK, "ok")}
    folders = {"/of/": lambda asked: text_reply(HTTPStatus.OK, asked.path)}

    def start(self):
        print("started", flush=True)

    def stop(self):
        print("stopped", flush=True)


@dataclass(frozen=True)
class Settings:
    log_level: str = "info"
    status_listen: tuple = ("127.0.0.1", int(sys.argv[1]))


def main():
    variables = {"GPUFENCE_TYPO": "1", "GPUFENCE_KNOWN": "1"}
    program.run("agent", Settings(), variables, Small, "STATUS", {"GPUFENCE_KNOWN"})
    return 0


sys.exit(exit_code("small", main))
"""


def started(port: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(port)]
    root = Path(__file__).parents[2]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=root)


def until(process: subprocess.Popen[str], message: str) -> list[dict[str, str]]:
    """Read the log up to a message."""
    assert process.stderr is not None
    lines: list[dict[str, str]] = []
    while not lines or lines[-1]["message"] != message:
        lines.append(json.loads(process.stderr.readline()))
    return lines


def test_a_program_serves_until_a_signal_and_stops_its_parts() -> None:
    """Its log begins with its settings and what sets nothing, and says what ended it."""
    with started() as process:
        lines = until(process, "serving")
        at = lines[-1]["statusListen"]
        pages = [urlopen(f"http://{at}/{path}").read() for path in ("healthz", "of/a")]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)

    assert [b"ok\n", b"a\n"] == pages
    assert ["settings", "GPUFENCE_TYPO is no setting of the agent; see gpufence-agent --help"] == [
        line["message"] for line in lines[:2]
    ]
    assert ["SIGTERM: ending", "ended"] == [
        json.loads(line)["message"] for line in errors.splitlines()
    ]
    assert ("started\nstopped\n", 0) == (output, process.returncode)


def test_an_address_that_is_taken_ends_a_program_before_it_begins() -> None:
    """The exit code is that of a wrong call, and the message names the setting."""
    with started() as first:
        port = until(first, "serving")[-1]["statusListen"].rpartition(":")[2]
        with started(int(port)) as second:
            output, errors = second.communicate(timeout=60)
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)

    assert ("", 2) == (output, second.returncode)
    assert "small: STATUS: cannot listen on" in errors


LOOPBACK_OF_STATUS_SERVER = "127.0.0.1"
LARGE = b"x" * (8 << 20)
PATIENCE_SECONDS_OF_STATUS_SERVER = 20.0


def broken() -> StatusReply:
    raise RuntimeError("a bug")


def serve(stay_seconds: float = 20.0) -> StatusServer:
    pages = {
        "/healthz": lambda: text_reply(HTTPStatus.OK, "ok"),
        "/large": lambda: StatusReply(HTTPStatus.OK, LARGE),
        "/large?only=little": lambda: text_reply(HTTPStatus.OK, "little"),
        "/broken": broken,
    }
    server = StatusServer(
        listen("LISTEN", (LOOPBACK_OF_STATUS_SERVER, 0), BACKLOG), pages, stay_seconds
    )
    server.start()
    return server


@pytest.fixture
def server() -> Iterator[StatusServer]:
    running = serve()
    yield running
    running.close()


@pytest.fixture
def hurried() -> Iterator[StatusServer]:
    """A server with little patience."""
    running = serve(0.2)
    yield running
    running.close()


def port(server: StatusServer) -> int:
    return int(server.address.rpartition(":")[2])


def connect(server: StatusServer) -> socket.socket:
    return socket.create_connection(
        (LOOPBACK_OF_STATUS_SERVER, port(server)), timeout=PATIENCE_SECONDS_OF_STATUS_SERVER
    )


def get(server: StatusServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    with closing(
        http.client.HTTPConnection(
            LOOPBACK_OF_STATUS_SERVER, port(server), PATIENCE_SECONDS_OF_STATUS_SERVER
        )
    ) as client:
        client.request(method, path, headers={"X-Long": "a" * 2000})
        response = client.getresponse()
        return response.status, response.read()


def rest(connection: socket.socket) -> bytes:
    """Read until the server ends the connection, in whatever way."""
    received = b""
    try:
        while chunk := connection.recv(65536):
            received += chunk
    except ConnectionError:
        pass
    return received


def test_pages_are_served(server: StatusServer) -> None:
    """GET and HEAD are answered, and unknown paths are told what there is."""
    assert (200, b"ok\n") == get(server, "/healthz")
    assert (200, b"") == get(server, "/healthz", "HEAD")
    assert (404, b"there are /broken, /healthz, /large\n") == get(server, "/")
    assert 405 == get(server, "/healthz", "DELETE")[0]


def test_a_page_is_made_at_most_a_few_times_a_second() -> None:
    """Whoever asks again at once gets the same page; a moment later it is made anew."""
    times, made = iter([0.0, 0.1, 1.0]), iter("12")
    page = CachedPage("text/plain", lambda: next(made), lambda: next(times))

    assert [b"1", b"1", b"2"] == [page().body for _ in range(3)]


def test_a_large_page_arrives_whole(server: StatusServer) -> None:
    """A page larger than every buffer on the way arrives to the last byte."""
    assert (200, LARGE) == get(server, "/large")


def test_a_page_may_have_parts(server: StatusServer) -> None:
    """A query that is a page's name is answered by it, and any other by the page without one."""
    assert b"little\n" == get(server, "/large?only=little")[1]
    assert LARGE == get(server, "/large?only=other")[1]


def test_a_page_with_a_bug_hurts_no_other(server: StatusServer) -> None:
    """An exception in a page is a 500 without its text, and the next page is served."""
    status, body = get(server, "/broken")

    assert (500, False) == (status, b"a bug\n" == body)
    assert 200 == get(server, "/healthz")[0]


def test_a_request_may_come_byte_by_byte(server: StatusServer) -> None:
    """A head in many pieces is put together."""
    with connect(server) as connection:
        for byte in b"GET /healthz HTTP/1.1\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert rest(connection).endswith(b"ok\n")


def test_a_body_that_nobody_asked_for_costs_no_reply(server: StatusServer) -> None:
    """What follows the head is thrown away, and the reply arrives."""
    with connect(server) as connection:
        connection.sendall(b"POST /healthz HTTP/1.1\r\n\r\n" + b"a" * 100_000)
        assert b" 405 " in rest(connection)


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x00\xff\n\n",
        b"\x00" * 20_000,
        b"\n\n\n",
        b"GET /healthz HTTP/2\r\n\r\n",
        b"GET /healthz\r\nX: " + b"a" * 9000,
        b"BREW /healthz HTTP/1.1\r\n\r\n",
    ],
)
def test_noise_is_refused(server: StatusServer, noise: bytes) -> None:
    """What is no request is answered with an error, and the server goes on."""
    with connect(server) as connection:
        connection.sendall(noise)
        received = rest(connection)

    assert b"" == received or received[:12] in {
        b"HTTP/1.1 400",
        b"HTTP/1.1 431",
        b"HTTP/1.1 505",
        b"HTTP/1.1 501",
    }
    assert 200 == get(server, "/healthz")[0]


def test_who_says_nothing_is_shown_out(hurried: StatusServer) -> None:
    """A client that does not finish its request in time is gone."""
    began = time.monotonic()
    with connect(hurried) as connection:
        connection.sendall(b"GET /healthz")
        assert b"" == rest(connection)

    assert time.monotonic() - began < PATIENCE_SECONDS_OF_STATUS_SERVER


def test_who_does_not_listen_is_shown_out(hurried: StatusServer) -> None:
    """A client that asks for much and reads nothing is cut off."""
    with connect(hurried) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        # Its end is noticed without reading anything: the server's socket is gone from the list.
        assert eventually(lambda: not _is_there(connection))
        assert len(rest(connection)) < len(LARGE)


def test_who_comes_and_goes_is_no_harm(server: StatusServer) -> None:
    """Clients that reset their connections at any point leave the server well."""
    for text in (b"", b"GET /", b"GET /large HTTP/1.1\r\n\r\n"):
        connection = connect(server)
        connection.sendall(text)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()

    assert 200 == get(server, "/healthz")[0]


def test_a_crowd_keeps_no_probe_out(server: StatusServer) -> None:
    """However many clients linger, the next one is served at once."""
    with ExitStack() as crowd:
        for _ in range(MOST_CONNECTIONS + 10):
            crowd.enter_context(connect(server)).sendall(b"GET /he")
        assert 200 == get(server, "/healthz")[0]


def test_an_end_before_the_beginning_is_no_harm() -> None:
    """A server that never served can be closed."""
    server = StatusServer(listen("STATUS", (LOOPBACK_OF_STATUS_SERVER, 0), BACKLOG), {})
    address = (LOOPBACK_OF_STATUS_SERVER, port(server))
    server.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def _is_there(connection: socket.socket) -> bool:
    """Tell whether the other end of a connection is still open, by what the kernel lists."""
    host, port_number = connection.getsockname()
    other = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port_number:04X}"
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    states = [line.split()[3] for line in lines if line.split()[2] == other]
    return "01" in states


def test_without_descriptors_the_oldest_makes_room(server: StatusServer) -> None:
    """
    When the process may open nothing more, the client that lingers goes and the next is served.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as crowd:
        lingering = crowd.enter_context(connect(server))
        lingering.sendall(b"GET /he")
        assert eventually(lambda: len(server._deadlines) == 1)
        late = crowd.enter_context(socket.socket())
        late.settimeout(PATIENCE_SECONDS_OF_STATUS_SERVER)
        # The next descriptor to be given out is the first one that is not allowed.
        with Path("/dev/null").open(encoding="ascii") as probe:
            lowest = probe.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            late.connect((LOOPBACK_OF_STATUS_SERVER, port(server)))
            late.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            answered = rest(late)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        assert answered.endswith(b"ok\n")
        assert b"" == rest(lingering)


def test_a_folder_answers_for_every_path_below_it() -> None:
    """It is told the rest of the path, and what the asker says of himself."""

    def folder(question: PageQuestion) -> StatusReply:
        return text_reply(HTTPStatus.OK, f"{question.path} {question.authorization}")

    listener = listen("LISTEN", (LOOPBACK_OF_STATUS_SERVER, 0), BACKLOG)
    server = StatusServer(listener, {"/v1/x": broken}, folders={"/v1/activity/": folder})
    server.start()
    with (
        closing(server),
        closing(http.client.HTTPConnection(LOOPBACK_OF_STATUS_SERVER, port(server))) as client,
    ):
        client.request("GET", "/v1/activity/a/b?c", headers={"Authorization": "Bearer t"})
        body = client.getresponse().read()

    assert b"a/b Bearer t\n" == body
