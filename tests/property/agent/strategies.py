"""Histories of pods on a card, second by second."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from agent.model.pod import PodLimit, PodOnNode
from agent.model.policy import EvictionPolicy
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, pod
from tests.support.agent.world import World

# A short life: grace, hold and pauses pass within the seconds that a property test can look at.
POLICY = EvictionPolicy(
    grace_seconds=4, hold_seconds=3, short_hold_seconds=2, repeated_hold_seconds=(4, 6)
)

names = ("a", "b", "c", "d")
amounts = st.sampled_from(
    [0, GIB, LIMIT, LIMIT + 64 * MIB, LIMIT + 65 * MIB, LIMIT + 257 * MIB, LIMIT + GIB]
)
unknown = st.none()


@dataclass
class Life:
    """What each pod holds in each second, and how much of the card is free."""

    pods: dict[str, PodOnNode]
    holds: list[dict[str, int | None]]
    free: list[int | None]
    unlisted: list[bool]
    policy: EvictionPolicy = field(default=POLICY)


def histories(figures: st.SearchStrategy[int | None], seconds: int = 24) -> st.SearchStrategy[Life]:
    return _life(figures, seconds)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, PodOnNode]:
    """Draw up to four pods of every kind, over two namespaces."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return {
        name: pod(
            name,
            namespace=draw(st.sampled_from(["x", "y"])),
            mode=draw(st.sampled_from([None, *Mode])),
            injected=draw(st.booleans()),
            terminating=draw(st.integers(0, 9)) == 0,
            exempt=draw(st.sampled_from(["", "", "", "it is a mirror pod"])),
            enforced=draw(st.integers(0, 4)) > 0,
        )
        for name in sorted(chosen)
    }


@st.composite
def _life(draw: st.DrawFn, figures: st.SearchStrategy[int | None], seconds: int) -> Life:
    chosen = draw(pods())
    return Life(
        pods=chosen,
        holds=[{name: draw(figures) for name in chosen} for _ in range(seconds)],
        free=[draw(st.sampled_from([5 * GIB, 300 * MIB, 0, None])) for _ in range(seconds)],
        unlisted=[draw(st.integers(0, 9)) == 0 for _ in range(seconds)],
    )


def lived(life: Life, *, order: tuple[str, ...] = (), limits: Sequence[int] = ()) -> World:
    """
    Live it, on one card; the pods come in the order named first. `limits` are those of the first
    pod, second by second.
    """
    world = World(policy=life.policy, cards=1, leaves_after=3)
    for name in (*order, *(item for item in life.pods if item not in order)):
        world.add(life.pods[name])
    for second, holds in enumerate(life.holds):
        for name, used in holds.items():
            world.hold(name, used)
        if limits and min(life.pods) in world.pods:
            world.change(min(life.pods), limits={CARDS[0].uuid: PodLimit(limits[second])})
        world.free[0] = life.free[second]
        world.unlisted = {0} if life.unlisted[second] else set()
        world.run(second + 1)
    return world


def alone(life: Life) -> Life:
    """Leave one ordinary pod of a life, with a neighbour who can be hurt."""
    name = min(life.pods)
    ours = pod(name)
    return replace(
        life,
        pods={name: ours, "z": pod("z", mode=None)},
        holds=[{name: holds[name], "z": GIB} for holds in life.holds],
    )


def at_the_margin() -> Life:
    """
    Make a life of a pod that swings about the margin of a card of which hardly any is free, once
    exactly at it: over in seconds 9, 13, 15 and 18.
    """
    held = {9: 65, 13: 65, 14: 64, 15: 65, 16: 64, 18: 257}
    little = (9, 13, 14, 15, 18)
    free = [300 * MIB if second in little else 5 * GIB for second in range(24)]
    return Life(
        pods={"a": pod("a")},
        holds=[{"a": LIMIT + held[at] * MIB if at in held else 0} for at in range(24)],
        free=[*free[:16], None, *free[17:]],
        unlisted=[at < 9 or at in (11, 12) or at > 18 for at in range(24)],
    )
