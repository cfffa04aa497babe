"""The door between two networks, here from one to the same."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simulator.cluster import forward

LOOPBACK = "127.0.0.1"
SECONDS = 30.0


@contextmanager
def opened(port: int) -> Iterator[int]:
    """Open a door to a port, and lend the port at which one enters."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        entrance: int = listening.getsockname()[1]
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(forward.SCRIPT)),
                *(str(listening.fileno()), LOOPBACK, str(port)),
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )
    try:
        yield entrance
    finally:
        _, complaints = process.communicate()
        assert (0, b"") == (process.returncode, complaints)


@contextmanager
def shouting() -> Iterator[int]:
    """Run a server that waits for the end of what it is told, and repeats it in capitals."""
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as stream:
                stream.write(stream.read().upper())

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def told(port: int, words: bytes) -> bytes:
    """Say something, end, and listen to the end."""
    with socket.create_connection((LOOPBACK, port), timeout=SECONDS) as connection:
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            return stream.read()


def test_words_pass_both_ways() -> None:
    """All of a conversation passes, and so does the end of each half."""
    words = b"words " * 100_000
    with shouting() as port, opened(port) as entrance:
        answer = told(entrance, words)

    assert words.upper() == answer


def test_nobody_behind_the_door_cuts_the_caller_off() -> None:
    """Who calls through a door that leads nowhere is not left waiting."""
    with socket.create_server((LOOPBACK, 0)) as gone:
        port = gone.getsockname()[1]

    with opened(port) as entrance, pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
        told(entrance, b"anybody?")


def test_the_door_shuts_with_its_holder() -> None:
    """When whoever holds its input lets go, nobody gets in any more."""
    with shouting() as port:
        with opened(port) as entrance:
            assert b"HELLO" == told(entrance, b"hello")

        with pytest.raises(ConnectionRefusedError):
            told(entrance, b"still there?")


def test_a_shutting_door_ends_conversations() -> None:
    """Who is still talking when the door shuts is cut off, and nobody complains."""
    with socket.create_server((LOOPBACK, 0)) as silent:
        with opened(silent.getsockname()[1]) as entrance:
            caller = socket.create_connection((LOOPBACK, entrance), timeout=SECONDS)
            listener, _ = silent.accept()
        with caller, listener:
            listener.settimeout(SECONDS)

            assert b"" == listener.recv(1)
