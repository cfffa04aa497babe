"""Asking agents over real sockets, whoever answers there."""

import time
from collections.abc import Mapping

import pytest

from controller.agents import Agents, SilentAgentError, fetch
from tests.support.http_server import PATIENCE_SECONDS, Exchange, HttpServer

_SECONDS = 0.5
_LONG_SECONDS = 3.0


class Dripping(HttpServer):
    """
    Sends its answer byte by byte, one at a time and each in time, from its head or its body on.
    """

    def __init__(self, headers: Mapping[str, str], *, head: bool) -> None:
        super().__init__()
        self._headers = headers
        self._head = head

    def handle(self, exchange: Exchange) -> None:
        if self._head:
            exchange.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
        else:
            exchange.send_head(200, self._headers)
        while not self.over.wait(0.05):
            exchange.wfile.write(b"a")
            exchange.wfile.flush()


@pytest.mark.parametrize(
    ("headers", "head"),
    [({}, True), ({"Content-Length": "100000"}, False), ({"Connection": "close"}, False)],
)
def test_an_agent_that_never_ends_is_not_waited_for(
    headers: Mapping[str, str], *, head: bool
) -> None:
    """All of its answer has to come in time, wherever it drips."""
    with Dripping(headers, head=head) as server:
        began = time.monotonic()
        with pytest.raises(SilentAgentError, match=r"takes more than 0.5 s|does not answer"):
            fetch(server.url, _SECONDS)
        took = time.monotonic() - began

    assert PATIENCE_SECONDS > took


def test_agents_that_never_end_hold_up_nobody_else() -> None:
    """As many of them as are asked at the same time are given up together."""
    with Dripping({}, head=True) as server:
        agents = Agents(lambda: {f"n{place}": server.url for place in range(16)}, _LONG_SECONDS)
        began = time.monotonic()
        said = agents.snapshots([f"n{place}" for place in range(16)], now=True)
        took = time.monotonic() - began
        agents.close()

    assert {None} == set(said.values())
    assert 16 * _LONG_SECONDS / 2 > took
