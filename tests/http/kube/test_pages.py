"""Pages of programs at addresses of their own, over real sockets."""

import time
from collections.abc import Mapping

import pytest

from kube import BadReplyError, UnreachableError, fetch_page
from tests.http.kube.dripping import Dripping
from tests.support.api_server import Answer, ApiServer, reply, watch
from tests.support.http_server import PATIENCE_SECONDS

PAGE = "/v1/snapshot"


def test_a_page_is_read_with_its_query(server: ApiServer) -> None:
    """What is asked for comes back as text."""
    server.on(f"GET {PAGE}", reply("grüße".encode()))

    assert "grüße" == fetch_page(f"{server.url}{PAGE}", 30.0, 100, {"only": "pods,cards"})
    assert {"only": "pods,cards"} == server.seen(f"GET {PAGE}")[0].query


def test_no_proxy_is_asked(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names stands before the internet, not before our programs."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.on(f"GET {PAGE}", reply(b"x"))

    assert "x" == fetch_page(f"{server.url}{PAGE}", 30.0, 100)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(b"x" * 101), "longer than 100 bytes"),
        (reply(b"no", status=404), "status 404"),
        (reply(b"", status=302, headers={"Location": "/elsewhere"}), "status 302"),
    ],
)
def test_what_is_no_page_is_an_error(server: ApiServer, answer: Answer, why: str) -> None:
    """A refusal, a redirect and too much are named."""
    server.on(f"GET {PAGE}", answer)

    with pytest.raises(BadReplyError, match=why):
        fetch_page(f"{server.url}{PAGE}", 30.0, 100)


def test_half_a_page_is_an_error(server: ApiServer) -> None:
    """What came of it is not taken for all of it."""
    server.on(f"GET {PAGE}", watch(b"half", then="cut"))

    with pytest.raises(UnreachableError, match="broke off"):
        fetch_page(f"{server.url}{PAGE}", 30.0, 100)


@pytest.mark.parametrize(
    ("headers", "head"),
    [({}, True), ({"Content-Length": "100000"}, False), ({"Connection": "close"}, False)],
)
def test_a_page_that_never_ends_is_not_waited_for(
    headers: Mapping[str, str], *, head: bool
) -> None:
    """All of it has to come in time, wherever it drips."""
    with Dripping(headers, head=head) as dripping:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match=r"no whole answer in 0\.5 s|no answer in time"):
            fetch_page(f"{dripping.url}{PAGE}", 0.5, 2**20)
        took = time.monotonic() - began

    assert PATIENCE_SECONDS > took
