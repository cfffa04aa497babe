"""How a collection reaches its handler, whatever the network makes of the bytes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kube.watch import Source
from tests.http.kube.builders import (
    LIST,
    PODS,
    WATCH,
    WATCHING,
    FakeClock,
    Recorder,
    bookmark,
    change,
    following,
    gone,
    name_of,
    pod,
    pods,
    status,
)
from tests.support.servers import Answer, ApiServer, hang, reply, watch

SIZE = json.dumps(change("ADDED", pod("größe€🎈", "11")), ensure_ascii=False).encode() + b"\n"
MANY = [json.dumps(change("ADDED", pod(str(each), str(11 + each)))).encode() for each in range(50)]


@pytest.mark.parametrize(
    ("lines", "calls", "version"),
    [
        (
            [
                change("ADDED", pod("c", "11")),
                change("MODIFIED", pod("a", "12")),
                change("DELETED", pod("b", "13")),
            ],
            [("ADDED", "c"), ("MODIFIED", "a"), ("DELETED", "b")],
            "13",
        ),
        ([bookmark("77")], [], "77"),
        ([change("ADDED", pod("a", "11")), b'{"type":'], [("ADDED", "a")], "11"),
        ([SIZE[at : at + 1] for at in range(len(SIZE))], [("ADDED", "größe€🎈")], "11"),
        ([b"\n".join(MANY) + b"\n"], [("ADDED", str(each)) for each in range(50)], "60"),
        (
            [change("ADDED", pod("big", "11", data="x" * 5_000_000))],
            [("ADDED", "big")],
            "11",
        ),
    ],
    ids=["changes", "bookmark", "half a line", "cut in a character", "many at once", "huge"],
)
def test_changes_arrive_in_order_and_a_watch_resumes_behind_them(
    server: ApiServer, lines: list[Any], calls: list[tuple[str, str]], version: str
) -> None:
    """
    Chunks may end anywhere, hold many lines or a part of one; what ended in time is continued where
    it was, without a new list, and a bookmark only moves the version on.
    """
    server.on(LIST, reply(pods(pod("a"), pod("b"))))
    server.on(WATCH, watch(*lines), hang())
    with following(server, handler := Recorder()):
        _, second = server.wait_for(WATCH, 2)

    assert [("replace", ["a", "b"]), *calls] == handler.calls
    assert version == second.query["resourceVersion"]
    assert 1 == len(server.seen(LIST))


def test_watch_asks_for_bookmarks_and_an_end(server: ApiServer) -> None:
    """Selectors, version, bookmarks and the window travel in the watch's query."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, hang())
    source = Source(path=PODS, keep=name_of, query={"fieldSelector": "spec.nodeName=n1"})
    with following(server, Recorder(), source=source):
        [seen] = server.wait_for(WATCH, 1)

    expected = {
        "fieldSelector": "spec.nodeName=n1",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "timeoutSeconds": "240",
    }
    assert expected == seen.query


def test_an_endless_line_does_not_fill_memory(server: ApiServer) -> None:
    """A line beyond the limit is given up, and the collection is listed anew."""
    server.on(LIST, reply(pods()), reply(pods(pod("a"))))
    server.on(WATCH, watch(b"x" * 2_000, then="hang"), hang())
    settings = replace(WATCHING, line_limit_bytes=1_000)
    with following(server, handler := Recorder(), settings=settings):
        calls = handler.wait_for(2)

    assert ("replace", ["a"]) == calls[1]


def test_a_list_from_cache_is_unpaged_and_no_older_than_what_was_seen(server: ApiServer) -> None:
    """The first takes any version; a later one must not be older than the last change."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", pod("a", "11")), change("ERROR", gone())), hang())
    with following(server, Recorder(), source=Source(path=PODS, keep=name_of, from_cache=True)):
        server.wait_for(LIST, 2)

    first, second = server.seen(LIST)
    assert {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"} == first.query
    assert "11" == second.query["resourceVersion"]


@pytest.mark.parametrize(
    "refusal",
    [
        reply(gone(), 410),
        reply(
            status(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge", "message": ""}]),
            504,
        ),
    ],
    ids=["expired", "too large"],
)
def test_versions_unknown_to_the_cache_fall_back_to_the_truth(
    server: ApiServer, refusal: Answer
) -> None:
    """When the cache cannot serve our version, as after a restored backup, the store is asked."""
    server.on(LIST, refusal, reply(pods(pod("a"))))
    server.on(WATCH, hang())
    source = Source(path=PODS, keep=name_of, from_cache=True)
    with following(server, handler := Recorder(), source=source):
        handler.wait_for(1)

    assert {"limit": "100"} == server.seen(LIST)[1].query


def test_a_refused_list_from_cache_is_not_repeated_elsewhere(server: ApiServer) -> None:
    """An overloaded server is not asked for the dearer list instead."""
    server.on(LIST, reply(status(503, "ServiceUnavailable"), 503))
    clock = FakeClock(pauses=1)
    source = Source(path=PODS, keep=name_of, from_cache=True)
    with following(server, Recorder(), source=source, clock=clock):
        assert clock.rested.wait(30)

    assert len(server.seen(LIST)) == 1
