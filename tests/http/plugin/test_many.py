"""
What a call asks of a large cluster: as many questions as there are agents, over few connections,
and of each agent the part that is shown.
"""

import threading

import pytest

from gpufence.snapshot import CUTS, write_snapshot
from kubectl_gpufence.agents import MOST_ASKED
from tests.support.api_server import reply
from tests.support.desk import SYSTEM, Desk, agent_pod, listed
from tests.support.http_server import Exchange
from tests.support.plugin import raw_node, snapshot

NODES = 4 * MOST_ASKED


class Agents:
    """The agents of many nodes: what each was asked for, and over which connections."""

    def __init__(self, desk: Desk, *, older: bool = False) -> None:
        self._lock = threading.Lock()
        self._parts = {"": write_snapshot(snapshot())}
        if not older:
            self._parts |= {cut.name: write_snapshot(snapshot(), cut) for cut in CUTS}
        self.asked: list[str] = []
        self.connections: set[object] = set()
        names = [(f"agent-{number}", f"gpu-{number}") for number in range(NODES)]
        desk.get(SYSTEM, listed(*(agent_pod(name, node) for name, node in names)))
        desk.get("/api/v1/nodes", listed(*(raw_node(name=node) for _, node in names)))
        for name, _ in names:
            desk.get(f"{SYSTEM}/{name}:8080/proxy/v1/snapshot", self._answer)

    def _answer(self, exchange: Exchange) -> None:
        part = exchange.path.partition("?only=")[2]
        with self._lock:
            self.asked.append(part)
            self.connections.add(exchange.client_address)
        reply(self._parts.get(part, self._parts[""]).encode())(exchange)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("top", "nodes"), "outlines"),
        (("top", "cards"), "outlines"),
        (("top", "-A"), "cards-and-pods"),
    ],
)
def test_each_agent_is_asked_once_for_what_is_shown(
    desk: Desk, arguments: tuple[str, ...], part: str
) -> None:
    """No more connections are made than agents are asked at the same time, and one for lists."""
    agents = Agents(desk)
    said = desk.run(*arguments)

    assert (0, NODES * [part]) == (said.code, agents.asked)
    assert len(agents.connections) <= MOST_ASKED + 1


@pytest.mark.parametrize("arguments", [("top", "nodes"), ("top", "-A")])
def test_older_agents_say_everything_and_show_the_same(
    desk: Desk, arguments: tuple[str, ...]
) -> None:
    """What nobody shows of it is left by the plugin."""
    Agents(desk, older=True)
    older = desk.run(*arguments)
    Agents(desk)

    assert older == desk.run(*arguments)
