"""
Ports that are held before anybody listens.
"""

import socket
from collections.abc import Iterator

import pytest

from simulator.controlplane.processes import HeldPort
from simulator.controlplane.programs import LOOPBACK


@pytest.fixture
def held() -> Iterator[HeldPort]:
    """
    A port that is ours.
    """
    port = HeldPort()
    yield port
    port.release()


def test_held_port_refuses_connections(held: HeldPort) -> None:
    """
    While nobody listens, clients are refused at once.
    """
    with socket.socket() as client, pytest.raises(ConnectionRefusedError):
        client.connect((LOOPBACK, held.number))


def test_held_port_is_kept_from_others(held: HeldPort) -> None:
    """
    A program that does not know about sharing cannot take the port.
    """
    with socket.socket() as thief, pytest.raises(OSError, match="in use"):
        thief.bind((LOOPBACK, held.number))


def test_sharing_program_gets_the_connections(held: HeldPort) -> None:
    """
    A program that shares the port and listens gets every connection.
    """
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((LOOPBACK, held.number))
        server.listen()
        for _ in range(20):
            with socket.create_connection((LOOPBACK, held.number), timeout=5) as client:
                accepted, address = server.accept()
                accepted.close()

                assert client.getsockname() == address
