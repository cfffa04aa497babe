"""Owners whose pods are evicted again and again are counted for an hour."""

from agent.concerns.repeated import HOUR_SECONDS
from agent.metrics import page
from gpufence.quantity import GIB
from tests.support.agent.builders import controller, pod
from tests.support.agent.node import ABOUT, ConcernedNode, Node, running

OVER = 4 * GIB


def counted(node: Node, later: float = 0.0) -> list[str]:
    state = node.loop.state
    more = node.concerns.families(state.last, state.at + later)
    lines = page(state, ABOUT, state.at, more).splitlines()
    return [line for line in lines if line.startswith("gpufence_owner_evicted_pods")]


def test_evicted_pods_of_an_owner_count_for_an_hour() -> None:
    """Each pod that is evicted is one of its owner's, until an hour later."""
    with running(node=ConcernedNode()) as node:
        for card in range(2):
            item = pod(f"web-{card}", uid=f"uid-{card}", controller=controller())
            node.add(item, OVER, card + 1, card=card)
        node.tick_until_acted(2)
        node.tick()
        node.tick()

        labels = '{namespace="team-a",owner="ReplicaSet/web",node="gpu-1"}'
        assert [f"gpufence_owner_evicted_pods{labels} 2"] == counted(node)
        assert [] == counted(node, HOUR_SECONDS + 600.0)
