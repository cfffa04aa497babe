"""How a collection reaches its handler, whatever the network makes of the bytes."""

import json
from dataclasses import replace

import pytest

from kube import Source
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


def test_list_then_changes_reach_the_handler_in_order(server: ApiServer) -> None:
    """The handler gets the list, then each change, projected."""
    server.on(LIST, reply(pods(pod("a"), pod("b"))))
    server.on(
        WATCH,
        watch(
            change("ADDED", pod("c", "11")),
            change("MODIFIED", pod("a", "12")),
            change("DELETED", pod("b", "13")),
            then="hang",
        ),
    )
    with following(server, handler := Recorder()):
        calls = handler.wait_for(4)

    expected = [("replace", ["a", "b"]), ("ADDED", "c"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert expected == calls


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


def test_watch_resumes_at_the_last_change(server: ApiServer) -> None:
    """A watch that ended in time is continued where it was, without a new list."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", pod("a", "11"))), hang())
    with following(server, Recorder()):
        _, second = server.wait_for(WATCH, 2)

    assert "11" == second.query["resourceVersion"]
    assert len(server.seen(LIST)) == 1


def test_bookmark_advances_without_a_change(server: ApiServer) -> None:
    """A bookmark moves the version on and never reaches the handler."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(bookmark("77")), hang())
    with following(server, handler := Recorder()):
        _, second = server.wait_for(WATCH, 2)

    assert "77" == second.query["resourceVersion"]
    assert [("replace", [])] == handler.calls


def test_a_line_cut_inside_a_character_arrives_whole(server: ApiServer) -> None:
    """Chunks may end anywhere, in the middle of a line or of a UTF-8 character."""
    line = json.dumps(change("ADDED", pod("größe€🎈", "11")), ensure_ascii=False).encode() + b"\n"
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(*(line[i : i + 1] for i in range(len(line))), then="hang"))
    with following(server, handler := Recorder()):
        calls = handler.wait_for(2)

    assert ("ADDED", "größe€🎈") == calls[1]


def test_several_lines_in_one_chunk_all_arrive(server: ApiServer) -> None:
    """A chunk may hold many lines."""
    lines = [json.dumps(change("ADDED", pod(str(i), str(11 + i)))).encode() for i in range(50)]
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(b"\n".join(lines) + b"\n", then="hang"))
    with following(server, handler := Recorder()):
        calls = handler.wait_for(51)

    assert [("ADDED", str(i)) for i in range(50)] == calls[1:]


def test_a_huge_line_arrives(server: ApiServer) -> None:
    """An object far larger than a chunk comes through."""
    big = pod("big", "11", data="x" * 5_000_000)
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", big), then="hang"))
    with following(server, handler := Recorder()):
        calls = handler.wait_for(2)

    assert ("ADDED", "big") == calls[1]


def test_an_endless_line_does_not_fill_memory(server: ApiServer) -> None:
    """A line beyond the limit is given up, and the collection is listed anew."""
    server.on(LIST, reply(pods()), reply(pods(pod("a"))))
    server.on(WATCH, watch(b"x" * 2_000, then="hang"), hang())
    settings = replace(WATCHING, line_limit_bytes=1_000)
    with following(server, handler := Recorder(), settings=settings):
        calls = handler.wait_for(2)

    assert ("replace", ["a"]) == calls[1]


def test_a_watch_that_ends_in_mid_line_is_resumed(server: ApiServer) -> None:
    """Half a line at a proper end is not taken for a change, nor forgotten."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", pod("a", "11")), b'{"type":'), hang())
    with following(server, handler := Recorder()):
        _, second = server.wait_for(WATCH, 2)

    assert "11" == second.query["resourceVersion"]
    assert [("replace", []), ("ADDED", "a")] == handler.calls


def test_a_list_from_cache_is_unpaged(server: ApiServer) -> None:
    """The first list from the server's cache takes any version."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, hang())
    with following(server, Recorder(), source=Source(path=PODS, keep=name_of, from_cache=True)):
        server.wait_for(WATCH, 1)

    expected = {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"}
    assert expected == server.seen(LIST)[0].query


def test_a_cache_behind_what_was_seen_is_not_believed(server: ApiServer) -> None:
    """A new list from the cache must not be older than the last change."""
    server.on(LIST, reply(pods()))
    server.on(WATCH, watch(change("ADDED", pod("a", "11")), change("ERROR", gone())), hang())
    with following(server, Recorder(), source=Source(path=PODS, keep=name_of, from_cache=True)):
        server.wait_for(LIST, 2)

    assert "11" == server.seen(LIST)[1].query["resourceVersion"]


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
