"""What a client of a broker relies on, of the plain one and, with `make keda`, of RabbitMQ."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.nvml.state import State
from simulator.workload.stomp import BrokerError, Frame, StompClient
from tests.support.broker import LOOPBACK, PlainBroker
from tests.support.observing import wait_until
from tests.support.workload import Program

RABBITMQ = "GPUFENCE_TEST_BROKER"
"""The port of a RabbitMQ that speaks STOMP, if the tests shall meet one."""


@pytest.fixture
def port() -> Iterator[int]:
    """A broker to speak with."""
    real = os.environ.get(RABBITMQ)
    if real:
        yield int(real)
    else:
        with PlainBroker() as broker:
            yield broker.port


@pytest.fixture
def queue(tmp_path: Path) -> str:
    """A name that nobody else uses."""
    return f"{tmp_path.name}-{os.getpid()}".replace("_", "-").replace("[", "-").replace("]", "")


def taken(client: StompClient) -> Frame:
    message = client.receive(5.0)
    assert message is not None
    return message


def test_a_message_comes_with_its_headers(port: int, queue: str) -> None:
    """What is sent is received as it was, once."""
    with StompClient(LOOPBACK, port) as sender, StompClient(LOOPBACK, port) as worker:
        worker.subscribe(queue)
        sender.send(queue, b"a\x00b\nc", sent="1.5", seconds="2")
        message = taken(worker)
        worker.acknowledge(message)

        assert b"a\x00b\nc" == message.body
        assert ("1.5", "2", "false") == tuple(
            message.headers[key] for key in ("sent", "seconds", "redelivered")
        )
        assert worker.receive(0.3) is None


def test_one_message_at_a_time(port: int, queue: str) -> None:
    """The next one comes when the one before is acknowledged."""
    with StompClient(LOOPBACK, port) as sender, StompClient(LOOPBACK, port) as worker:
        worker.subscribe(queue)
        for number in range(2):
            sender.send(queue, str(number).encode())
        first = taken(worker)
        between = worker.receive(0.3)
        worker.acknowledge(first)

        assert between is None
        assert b"1" == taken(worker).body


def test_what_nobody_acknowledged_comes_again(port: int, queue: str) -> None:
    """A worker that goes in the middle leaves its message to the next one, who is told so."""
    with StompClient(LOOPBACK, port) as sender, StompClient(LOOPBACK, port) as worker:
        worker.subscribe(queue)
        sender.send(queue, b"long")
        taken(worker)
    with StompClient(LOOPBACK, port) as other:
        other.subscribe(queue)
        again = taken(other)
        other.acknowledge(again)

    assert (b"long", "true") == (again.body, again.headers["redelivered"])


def test_a_worker_keeps_its_card_busy_meanwhile(port: int, queue: str, tmp_path: Path) -> None:
    """
    A workload works messages off, tells how long each waited, and asked to end in the middle
    finishes the one it has.
    """
    state = State.create(tmp_path / "cards", "T4")
    script = f"hold 100Mi; serve {LOOPBACK}:{port}/{queue}"
    with (
        StompClient(LOOPBACK, port) as sender,
        StompClient(LOOPBACK, port) as reader,
        Program(state.path, script) as worker,
    ):
        reader.subscribe(f"{queue}.done")
        worker.until("serve")
        sender.send(queue, b"work", sent=f"{time.time():.3f}", seconds="0.6")
        wait_until(lambda: _busy(state))
        worker.signal(signal.SIGTERM)
        done = taken(reader)
        reader.acknowledge(done)
        code, _ = worker.end()

    at, waited, again = done.body.decode().split()

    assert 128 + signal.SIGTERM == code
    assert "false" == again
    assert float(waited) < 5 < float(at)
    assert not list(state.processes.living())


def test_a_broker_that_is_not_there_ends_a_worker(tmp_path: Path) -> None:
    """Without a broker a workload ends with its address."""
    state = State.create(tmp_path / "cards", "T4")
    with Program(state.path, f"serve {LOOPBACK}:1/none") as worker:
        code, complaint = worker.end()

    assert 1 == code
    assert f"no broker at {LOOPBACK}:1" in complaint


def test_a_broker_that_refuses_is_named() -> None:
    """Its own words are in the error."""
    with PlainBroker(refuses=True) as broker, pytest.raises(BrokerError, match="not you"):
        StompClient(LOOPBACK, broker.port)


def test_a_broker_that_goes_is_noticed(queue: str) -> None:
    """Whoever listens then gets an error, and no silence."""
    with PlainBroker() as broker:
        client = StompClient(LOOPBACK, broker.port)
        client.subscribe(queue)

    with client, pytest.raises(BrokerError, match=r"closed|gone"):
        client.receive(5.0)


def _busy(state: State) -> bool:
    return any(state.processes.living()) and any(
        state.processes.record(slot).level_count % 2 for slot in range(4)
    )
