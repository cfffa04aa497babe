"""Events against a server that forbids some, loses answers, or is away."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gpufence.event_text import MOST_TEXT, Anchor
from kube import core
from kube.event_writer import EventWriter
from kube.events import EventText, Regarding, Reporter
from tests.http.kube.builders import FakeClock, client_of, status
from tests.support.observing import wait_until
from tests.support.servers import Answer, ApiServer, cut, reply

FORBIDDEN = reply(status(403, "Forbidden", "quota"), 403)
MADE = reply({"kind": "Event"}, 201)
WRITTEN = reply({"kind": "Event"})
TEAM = f"POST {core('namespaces', 'team', 'events')}"
FULL = f"POST {core('namespaces', 'full', 'events')}"


def about(namespace: str = "team", name: str = "a") -> Regarding:
    return Regarding("v1", "Pod", namespace, name, f"uid-{name}")


def text(reason: str = "Said", message: str = "said") -> EventText:
    return EventText(reason, message)


@contextmanager
def writing() -> Iterator[EventWriter]:
    writer = EventWriter(Reporter("gpufence-agent", "n1", "n1"), clock=FakeClock())
    yield writer
    writer.stop(30)


def bodies(server: ApiServer, key: str) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in server.seen(key)]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        running.on(FULL, FORBIDDEN)
        running.on(TEAM, MADE)
        yield running


def test_an_event_names_its_object_and_its_writer(server: ApiServer) -> None:
    """All that kubectl finds and shows it by; what would break a terminal is left out."""
    with writing() as writer:
        writer.start(client_of(server))
        writer.say(about(), text(message="one\n" + "x" * 2000))
        wait_until(lambda: 1 == writer.written)
    (event,) = bodies(server, TEAM)

    assert "a." == event["metadata"]["name"][:2]
    assert ("Pod", "uid-a") == (event["involvedObject"]["kind"], event["involvedObject"]["uid"])
    assert {"component": "gpufence-agent", "host": "n1"} == event["source"]
    assert (1, "Warning", "Said") == (event["count"], event["type"], event["reason"])
    assert event["message"].startswith("one?")
    assert MOST_TEXT == len(event["message"])


def test_an_event_ends_with_the_link_to_what_it_is_about(server: ApiServer) -> None:
    """What was said for users leads to the page that the operator has named."""
    page = "https://wiki.example.com/gpu"
    writer = EventWriter(Reporter("gpufence-agent", "n1"), help_url=page, clock=FakeClock())
    writer.start(client_of(server))
    writer.say(about(), EventText("Said", "x" * 2000, anchor=Anchor.CAPPED))
    wait_until(lambda: 1 == writer.written)
    writer.stop(30)
    (event,) = bodies(server, TEAM)

    assert MOST_TEXT == len(event["message"])
    assert event["message"].endswith(f"xxx... {page}#capped")


def test_a_namespace_that_forbids_events_holds_up_no_other(server: ApiServer) -> None:
    """Many that are forbidden, each of which would be tried for a while, cost that while once."""
    with writing() as writer:
        for number in range(50):
            writer.count(number, about("full"), text())
        writer.count(60, about(), text())
        writer.start(client_of(server))
        wait_until(lambda: 50 == writer.refused)

    assert 1 == writer.written
    assert 50 + 10 > len(server.seen(FULL))


def test_urgent_events_are_written_first(server: ApiServer) -> None:
    """An eviction waits for no Event that came before it."""
    with writing() as writer:
        writer.count(1, about(), text("Plain"))
        writer.count(2, about(), text("Urgent"), urgent=True)
        writer.start(client_of(server))
        wait_until(lambda: 2 == writer.written)

    assert ["Urgent", "Plain"] == [event["reason"] for event in bodies(server, TEAM)]


def test_what_happens_again_is_counted_on_the_same_event(server: ApiServer) -> None:
    """One that has expired meanwhile is written anew, with its count and its first time."""
    with writing() as writer:
        writer.start(client_of(server))
        writer.count(7, about(), text())
        wait_until(lambda: 1 == writer.written)
        (made,) = bodies(server, TEAM)
        at = f"PATCH {core('namespaces', 'team', 'events', made['metadata']['name'])}"
        server.on(at, WRITTEN, reply(status(404, "NotFound"), 404))
        writer.count(7, about(), text(message="again"), 2)
        wait_until(lambda: 2 == writer.written)
        writer.count(7, about(), text(message="and again"), 3)
        wait_until(lambda: 3 == writer.written)
    (patched, _), anew = bodies(server, at), bodies(server, TEAM)[-1]

    assert {"count": 2, "message": "again"}.items() <= patched.items()
    assert (3, made["firstTimestamp"]) == (anew["count"], anew["firstTimestamp"])
    assert made["metadata"]["name"] != anew["metadata"]["name"]


def test_what_happens_again_before_it_was_written_is_one_event(server: ApiServer) -> None:
    """What waits is written as it is by then."""
    with writing() as writer:
        for times in (1, 2, 3):
            writer.count(7, about(), text(message=f"{times}"), times)
        writer.start(client_of(server))
        wait_until(lambda: 1 == writer.written)

    assert [(3, "3")] == [(each["count"], each["message"]) for each in bodies(server, TEAM)]


def test_an_event_whose_answer_was_lost_is_not_written_twice(server: ApiServer) -> None:
    """The next attempt goes by the same name; to find it there is as good as having made it."""
    server.on(TEAM, cut(), cut(), reply(status(409, "AlreadyExists"), 409))
    with writing() as writer:
        writer.start(client_of(server))
        writer.say(about(), text())
        wait_until(lambda: 1 == writer.written)

    assert 1 == len({event["metadata"]["name"] for event in bodies(server, TEAM)})


@pytest.mark.parametrize(
    "going",
    [
        reply(status(404, "NotFound"), 404),
        reply(status(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}]), 403),
    ],
    ids=["gone", "going"],
)
def test_a_namespace_that_goes_away_is_no_trouble(
    server: ApiServer, going: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its Events are counted as refused, after one attempt, without a warning."""
    server.on(TEAM, going)
    with writing() as writer:
        writer.start(client_of(server))
        writer.say(about(), text())
        wait_until(lambda: 1 == writer.refused)

    assert (0, 0, []) == (writer.written, writer.dropped, caplog.records)
    assert 1 == len(server.seen(TEAM))
