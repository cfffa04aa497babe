"""Whose Events wait for whose, against a server that forbids some."""

import time
from collections.abc import Iterator

import pytest

from agent.cluster.event_writer import EventWriter
from agent.cluster.settings import ClusterSettings
from agent.events import EventCreate, Notice, Regarding
from gpufence import names
from kube import ClientSettings, connect, core
from tests.support.api_server import ApiServer, reply
from tests.support.observing import wait_until

SETTINGS = ClusterSettings(node="n1", forbidden_seconds=0.5, close_seconds=0.1)
FORBIDDEN = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "quota"}


def posted(namespace: str) -> str:
    return f"POST {core('namespaces', namespace, 'events')}"


def said(serial: int, namespace: str, reason: str = names.LIMIT_EXCEEDED) -> EventCreate:
    about = Regarding("v1", "Pod", namespace, "a", f"uid-{serial}")
    return EventCreate(serial, Notice(reason, about, "said"))


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as made:
        made.on(posted("full"), reply(FORBIDDEN, 403))
        made.on(posted("team-b"), reply({"kind": "Event"}, 201))
        yield made


@pytest.fixture
def writer(server: ApiServer) -> Iterator[EventWriter]:
    made = EventWriter(SETTINGS)
    made.write(said(number, "full") for number in range(50))
    made.write([said(60, "team-b"), said(61, "team-b", names.EVICTED)])
    made.start(connect(ClientSettings(server=server.url)))
    yield made
    made.stop()


def test_a_namespace_that_forbids_events_holds_up_nobody(
    writer: EventWriter, server: ApiServer
) -> None:
    """
    Many Events that are forbidden, each of which would be tried for a while, cost that while once.
    """
    began = time.monotonic()
    wait_until(lambda: writer.written == 2)
    seconds = time.monotonic() - began

    assert 50 * SETTINGS.forbidden_seconds / 2 > seconds
    assert 50 == writer.refused
    assert 50 + 10 > len(server.seen(posted("full")))


def test_evictions_are_told_first(writer: EventWriter, server: ApiServer) -> None:
    """An eviction waits for no Event that came before it."""
    wait_until(lambda: writer.written == 2)
    first, second = (str(item.body) for item in server.seen(posted("team-b")))

    assert names.EVICTED in first
    assert names.LIMIT_EXCEEDED in second
