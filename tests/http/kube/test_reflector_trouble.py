"""How a picture of a collection stays true when the server or the way to it fails."""

import json
import logging
import threading
import time
from dataclasses import replace

import pytest

from gpufence.times import Backoff
from kube import JsonObject
from kube.informers.reflector import Reflector
from kube.watch import ChangeType, Source
from tests.http.kube.builders import (
    AT_ONCE_SECONDS,
    LIST,
    PODS,
    SETTINGS,
    WATCH,
    WATCHING,
    FakeClock,
    Recorder,
    bookmark,
    change,
    client_of,
    following,
    gone,
    name_of,
    pod,
    pods,
    status,
)
from tests.support.observing import wait_until
from tests.support.servers import Answer, ApiServer, cut, hang, reply, watch


@pytest.mark.parametrize(
    "broken",
    [
        watch(change("ERROR", gone())),
        reply(gone(), 410),
        watch(b'{"type": "ADDED", "obj\n'),
        watch(change("EXPLODED", pod("a", "11"))),
        watch({"type": "ADDED"}),
        watch(b"17\n"),
        watch(change("ADDED", {"metadata": {}})),
        reply(status(403, "Forbidden"), 403),
        reply(status(500, "InternalError"), 500),
    ],
    ids=[
        "410 as event",
        "410 as status",
        "broken line",
        "unknown type",
        "no object",
        "no event",
        "no version",
        "forbidden",
        "server error",
    ],
)
def test_what_cannot_be_resumed_is_listed_anew(server: ApiServer, broken: Answer) -> None:
    """After an expired version or a line that makes no sense, the handler gets a fresh list."""
    server.on(LIST, reply(pods(pod("old"))), reply(pods(pod("new"), version="50")))
    server.on(WATCH, broken, hang())
    with following(server, handler := Recorder(), clock=(clock := FakeClock())):
        calls = handler.wait_for(2)
        _, second = server.wait_for(WATCH, 2)

    assert [("replace", ["old"]), ("replace", ["new"])] == calls
    assert "50" == second.query["resourceVersion"]
    assert [0.5] == clock.pauses


@pytest.mark.parametrize(
    "refusal",
    [reply(status(429, "TooManyRequests"), 429, {"Retry-After": "7"}), cut()],
    ids=["throttled", "broken"],
)
def test_what_can_be_resumed_is_not_listed_anew(server: ApiServer, refusal: Answer) -> None:
    """Throttling and broken connections never cost the server a list."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, refusal, refusal, hang())
    with following(server, Recorder()):
        server.wait_for(WATCH, 3)

    assert len(server.seen(LIST)) == 1


THROTTLED = reply(status(429, "TooManyRequests"), 429)
WAIT_7, WAIT_9999 = (
    reply(status(429, "TooManyRequests"), 429, {"Retry-After": wait}) for wait in ("7", "9999")
)
ADDED = change("ADDED", pod("a", "11"))


@pytest.mark.parametrize(
    ("lists", "watches", "pauses", "listed"),
    [
        ([WAIT_7, WAIT_9999, reply(pods())], [hang()], [7.0, 120.0], 3),
        (
            [reply(pods(pod("a")))],
            [watch(change("ERROR", gone()))],
            *([0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0], 8),
        ),
        (
            [reply(pods())],
            [*[THROTTLED] * 3, *[reply(gone(), 410)] * 2, hang()],
            *([0.5, 1.0, 2.0, 0.5, 1.0], 3),
        ),
        (
            [reply(pods())],
            [*[THROTTLED] * 3, *[reply(status(403, "Forbidden"), 403)] * 2, hang()],
            *([0.5, 1.0, 2.0, 0.5, 1.0], 3),
        ),
        ([reply(pods())], [cut(), cut(), watch(ADDED, then="cut"), hang()], [0.5, 0.5], 1),
        ([reply(pods())], [watch(bookmark("11"), then="hang"), hang()], [0.5, 1.0], 1),
    ],
    ids=[
        *("told to wait", "always expired", "back, too old", "back, no rules yet", "delivered"),
        "silent",
    ],
)
def test_pauses_grow_while_trouble_lasts(
    server: ApiServer, lists: list[Answer], watches: list[Answer], pauses: list[float], listed: int
) -> None:
    """
    A server's wish is obeyed up to two minutes; what it says first after an outage, and trouble
    after a watch that delivered, has the shortest pause. A list is asked for only where it must be.
    """
    server.on(LIST, *lists)
    server.on(WATCH, *watches)
    settings = replace(WATCHING, silence_seconds=0.1)
    clock = FakeClock(pauses=len(pauses))
    with following(server, Recorder(), settings=settings, clock=clock):
        assert clock.rested.wait(30)

    assert pauses == clock.pauses
    assert listed >= len(server.seen(LIST)) >= listed - 1


def test_a_watch_that_ends_at_once_is_not_repeated_hotly(server: ApiServer) -> None:
    """A server that ends every watch at once, saying nothing, is asked ever more slowly."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch())
    clock = FakeClock(pauses=3)
    settings = replace(WATCHING, settled_seconds=1.0)
    with following(server, Recorder(), clock=clock, settings=settings):
        assert clock.rested.wait(30)

    assert [0.5, 1.0, 2.0] == clock.pauses
    assert len(server.seen(LIST)) == 1


def test_refused_connections_back_off(server: ApiServer) -> None:
    """A server that is down is asked once per pause, and pauses grow to their bound."""
    clock = FakeClock(pauses=7)
    reflector = Reflector(
        client_of(server), Source(path=PODS, keep=name_of), Recorder(), WATCHING, clock
    )
    server.__exit__(None, None, None)
    reflector.start()
    assert clock.rested.wait(30)
    state = reflector.state
    reflector.stop()

    assert [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0] == clock.pauses
    assert (False, None, 7) == (state.synced, state.last_contact, state.failures_in_a_row)


def test_half_open_connection_is_noticed(server: ApiServer) -> None:
    """A watch on which nothing comes for the time of silence is opened again, without ado."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", pod("a", "11")), then="hang"), hang())
    settings = replace(WATCHING, silence_seconds=0.1)
    clock = FakeClock()
    with following(server, handler := Recorder(), settings=settings, clock=clock):
        _, second, *_ = server.wait_for(WATCH, 2)
        pauses = list(clock.pauses)

    assert "11" == second.query["resourceVersion"]
    assert [("replace", []), ("ADDED", "a")] == handler.calls
    assert [] == pauses


@pytest.mark.parametrize(
    ("key", "answer"),
    [(LIST, hang()), (WATCH, watch(bookmark("11"), then="hang"))],
    ids=["waiting for a list", "blocked in a read"],
)
def test_stop_is_quick(server: ApiServer, key: str, answer: Answer) -> None:
    """Stopping does not wait for a silent server to speak, nor for the head of an answer."""
    server.on(LIST, reply(pods()))
    server.on(key, answer)
    with following(server, Recorder()) as reflector:
        server.wait_for(key, 1)
        began = time.monotonic()
        reflector.stop()
        took = time.monotonic() - began

    assert took < AT_ONCE_SECONDS
    assert not reflector.running


def test_stop_is_no_failure(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    """A wanted end is not reported as trouble."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, hang())
    with caplog.at_level(logging.INFO), following(server, Recorder()) as reflector:
        server.wait_for(WATCH, 1)

    assert reflector.state.last_error is None
    assert [] == caplog.messages


def test_state_tells_when_the_server_was_last_heard(server: ApiServer) -> None:
    """Every byte renews the time of last contact, so that staleness shows."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, cut(), cut(), watch(bookmark("11"), then="hang"))
    with following(server, Recorder(), clock=(clock := FakeClock())) as reflector:
        assert reflector.wait_until_synced(30)
        server.wait_for(WATCH, 3)
        deadline = time.monotonic() + 30
        while reflector.state.last_error is not None and time.monotonic() < deadline:
            time.sleep(0.001)
        state = reflector.state

    assert (True, clock.now, 1) == (state.synced, state.last_contact, state.lists)
    assert clock.now == 1000.5


def test_a_bug_in_the_handler_does_not_end_the_following(server: ApiServer) -> None:
    """A handler that fails is logged, and given the whole collection again."""

    class Buggy(Recorder):
        def apply(self, change: str, item: str) -> None:
            raise RuntimeError(f"no idea what {change} {item} means")

    server.on(LIST, reply(pods()), reply(pods(pod("a"))))
    server.on(WATCH, watch(change("ADDED", pod("a", "11")), then="hang"), hang())
    with following(server, handler := Buggy()):
        calls = handler.wait_for(2)

    assert [("replace", []), ("replace", ["a"])] == calls


def test_real_pauses_end_with_stop(server: ApiServer) -> None:
    """Stopping does not wait for a pause to be over."""
    server.on(LIST, reply(status(500, "InternalError"), 500))
    settings = replace(WATCHING, backoff=Backoff(first_seconds=60, limit_seconds=60))
    reflector = Reflector(
        client_of(server, SETTINGS), Source(path=PODS, keep=name_of), Recorder(), settings
    )
    reflector.start()
    deadline = time.monotonic() + 30
    while not reflector.state.failures_in_a_row and time.monotonic() < deadline:
        time.sleep(0.001)
    began = time.monotonic()
    reflector.stop()

    assert reflector.state.failures_in_a_row == 1
    assert time.monotonic() - began < AT_ONCE_SECONDS


def test_a_handler_may_stop_what_calls_it(server: ApiServer) -> None:
    """After a stop from within a change, the next change is not delivered."""
    known = threading.Event()

    class Content(Recorder):
        def apply(self, change: ChangeType, item: str) -> None:
            super().apply(change, item)
            assert known.wait(30)
            reflector.stop()

    server.on(LIST, reply(pods()))
    lines = [json.dumps(change("ADDED", pod(name, "11"))) for name in "ab"]
    server.on(WATCH, watch("".join(f"{line}\n" for line in lines).encode(), then="hang"))
    with following(server, handler := Content()) as reflector:
        known.set()
        handler.wait_for(2)
        wait_until(lambda: not reflector.running)

    assert [("replace", []), ("ADDED", "a")] == handler.calls


def test_a_list_that_arrives_after_the_stop_is_not_delivered(server: ApiServer) -> None:
    """A handler hears nothing once its reflector was stopped."""
    server.on(LIST, reply(pods(pod("a"))))

    known = threading.Event()

    def keep(item: JsonObject) -> str:
        assert known.wait(30)
        reflector.stop()
        return name_of(item)

    handler = Recorder()
    with following(server, handler, source=Source(path=PODS, keep=keep)) as reflector:
        known.set()
        wait_until(lambda: not reflector.running)

    assert [] == handler.calls


def test_stop_before_start_is_allowed(server: ApiServer) -> None:
    """Programs may tidy up what they did not come to start."""
    reflector = Reflector(client_of(server), Source(path=PODS, keep=name_of), Recorder())
    reflector.stop()

    assert not reflector.state.synced
