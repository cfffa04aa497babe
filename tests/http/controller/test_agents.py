"""Asking agents over real sockets, whoever answers there."""

import time

from controller.agents import Agents
from tests.http.kube.dripping import Dripping

_LONG_SECONDS = 3.0


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
