"""Connections that are asked again and again, over real sockets."""

import time
from dataclasses import replace

import pytest

from kube import Client, UnreachableError
from tests.http.kube.builders import PODS, SETTINGS, client_of, pod, pods
from tests.support.api_server import Answer, ApiServer, cut, hang, reply, watch
from tests.support.http_server import Exchange

POD = "/api/v1/namespaces/a/pods/p"
KEY = f"GET {POD}"
PAGE = f"{POD}/proxy/v1/snapshot"


def test_all_questions_go_over_one_connection(server: ApiServer, client: Client) -> None:
    """Objects, pages and texts, whole and in chunks, come over the connection of the first."""
    callers = set()

    def noted(exchange: Exchange) -> None:
        callers.add(exchange.client_address)
        watch(pods(pod("a"), pod("b")))(exchange)

    server.on(f"GET {PODS}", noted)
    for _ in range(3):
        assert ["a", "b"] == [item["metadata"]["name"] for item in client.list(PODS).items]

    assert 1 == len(callers)


def test_a_question_is_the_same_on_every_connection(server: ApiServer, client: Client) -> None:
    """A server sees no difference between the first and those after it."""
    server.on(KEY, reply(pod("p")))
    client.get(POD, {"a": "b c"})
    client.get(POD, {"a": "b c"})
    first, second = server.seen(KEY)

    assert (first.query, first.headers) == (second.query, second.headers)


def _odd(exchange: Exchange) -> None:
    exchange.wfile.write(b"HTTP/9 no\r\n\r\n")


@pytest.mark.parametrize("answer", [cut(), _odd], ids=["cut", "odd"])
def test_a_connection_that_broke_is_replaced_once(
    server: ApiServer, client: Client, answer: Answer
) -> None:
    """The same question is asked on a new one, where its answer counts."""
    server.on(KEY, reply(pod("p")), answer, reply(pod("q")))
    client.get(POD)

    assert "q" == client.get(POD)["metadata"]["name"]
    assert 3 == len(server.seen(KEY))


def test_a_server_that_breaks_every_connection_is_asked_twice(
    server: ApiServer, client: Client
) -> None:
    """No more than with a connection that is new."""
    server.on(KEY, reply(pod("p")), cut())
    client.get(POD)

    with pytest.raises(UnreachableError, match="broke off"):
        client.get(POD)

    assert 3 == len(server.seen(KEY))


def test_patience_holds_on_every_connection(server: ApiServer) -> None:
    """Whoever says nothing is not asked once more."""
    server.on(KEY, reply(pod("p")), hang())
    with client_of(server, replace(SETTINGS, reply_timeout_seconds=0.3)) as client:
        client.get(POD)
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="no answer in time"):
            client.get(POD)

        assert 0.3 <= time.monotonic() - began
        assert 2 == len(server.seen(KEY))


def test_half_an_answer_is_named(server: ApiServer, client: Client) -> None:
    """
    What came of a page is not taken for all of it, and the next one comes over a new connection.
    """
    server.on(f"GET {PAGE}", reply(b"x"), watch(b"half", then="cut"), reply(b"y"))
    assert "x" == client.text(PAGE)

    with pytest.raises(UnreachableError, match="broke off"):
        client.text(PAGE)

    assert "y" == client.text(PAGE)
