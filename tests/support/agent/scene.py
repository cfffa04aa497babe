"""A node on which everything happens at once, for the golden page and the golden snapshot."""

from dataclasses import replace

from agent.model.pod import Cap
from agent.model.sample import Trouble
from agent.model.state import About, AgentState, ClusterStatus, Identity
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, controller, occupant, pod
from tests.support.agent.node import Node, running

STATUS = ClusterStatus(
    synced=True,
    fresh=True,
    silence_seconds=12.5,
    highest=Mode.EVICT,
    identity=Identity.IMPERSONATING,
    published=True,
    events_written=7,
    events_dropped=2,
    events_refused=1,
)
ABOUT = About("gpu-1", "1.2.3", "2026-01-02T03:04:05Z", 3.0, STATUS, restarts=4)


def busy_state(ground: Node | None = None) -> AgentState:
    """Return what is known after a violator has gone, with others in every state still there."""
    with running(node=ground) as node:
        node.add(pod("greedy", controller=controller()), LIMIT + 300 * MIB, 1)
        node.add(pod("good", caps={"main": Cap(2 * GIB, 512 * MIB)}), GIB, 2)
        node.tick_until_acted()
        node.tick()
        del node.cards.held[0][1]
        node.add(pod("capped", mode=Mode.CAP, namespace="team-b"), LIMIT + 100 * MIB, 3)
        node.add(pod("quiet", mode=Mode.OBSERVE), None, 4, card=1)
        node.add(pod("free", mode=None, limit=None, namespace="team-c"), GIB, 5, card=2)
        node.cards.held[2][99] = 512 * MIB
        node.processes.living[99] = occupant(99, None, None, command='Xorg "x"')
        node.tick(3)
        return node.loop.state


def blinded(state: AgentState) -> AgentState:
    """Return the same with its second card lost at the last look."""
    last = state.last
    assert last is not None
    seen = last.observation
    first, second, *rest = seen.sample.cards
    lost = replace(second, memory=None, processes=None, trouble=Trouble("it fell off the bus"))
    cards = dict(seen.cards)
    cards[second.card.uuid] = replace(
        cards[second.card.uuid], memory=None, listed_at=None, processes=(), unattributed_bytes=None
    )
    sample = replace(
        seen.sample, cards=(first, lost, *rest), unidentified=(Trouble("index 3: no access"),)
    )
    blind = replace(seen, sample=sample, cards=cards)
    return replace(state, last=replace(last, observation=blind))
