"""
How many functions and modules of ours one pod create and one verdict run through.

Whoever changes the order of things reads all of them first, so the numbers may not grow unnoticed.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from gpufence.mode import Mode
from gpufence.nodes import read_node
from gpufence.quantity import GIB
from gpufence.settings import read_settings
from tests.support.agent.builders import pod as pod_on_node
from tests.support.agent.world import World
from tests.support.builders import card, gpushare, node, pod
from tests.support.sources import PACKAGES
from webhook.fleet import Fleet
from webhook.rewrite import Rewrite, rewrite
from webhook.settings import PodSettings

SECONDS_OVER = 10


class Walk(NamedTuple):
    functions: int
    modules: int


RECORDED = {"create": Walk(110, 26), "verdict": Walk(37, 8)}
"""
What was counted when it was last looked at; a change that brings a number down writes it here.
"""

GROWTH_PERCENT = 10


def too_long(counted: Walk, recorded: Walk) -> bool:
    """Return whether a walk has grown by a tenth or more."""
    pairs = zip(counted, recorded, strict=True)
    return any(now * 100 >= before * (100 + GROWTH_PERCENT) for now, before in pairs)


def walks() -> dict[str, Walk]:
    """Count both walks; only in a process that has not yet taken them is no cache filled."""
    return {"create": _create(), "verdict": _verdict()}


def walk_of(call: Callable[[], object]) -> Walk:
    """
    Count what one call runs through: named functions, and not the parts that dataclasses make.
    """
    functions: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        written = not code.co_filename.startswith("<") and not code.co_name.startswith("<")
        if event == "call" and written and module.partition(".")[0] in PACKAGES:
            functions.add((module, code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(len(functions), len({module for module, _ in functions}))


def _create() -> Walk:
    """Rewrite a PyTorch pod with a variable, on a cluster of two kinds of cards."""
    trainer = gpushare(units="3") | {
        "image": "pytorch/pytorch:2.4.0",
        "command": ["python", "train.py"],
        "env": [{"name": "OMP_NUM_THREADS", "value": "4"}],
    }
    item = pod(trainer)
    policy = read_settings(PodSettings, {"GPUFENCE_DEFAULT_CARD": "15360Mi"}).policy("pass\n")
    large = card(1, memory_bytes=80 * GIB, model="NVIDIA H100", compute_capability=(9, 0))
    nodes = [read_node(node(each), policy.default.units) for each in (card(), large)]
    fleet = Fleet([each for each in nodes if each is not None])
    outcomes: list[object] = []
    walk = walk_of(lambda: outcomes.append(rewrite(item, Mode.CAP, {}, fleet, policy)))
    if not isinstance(outcomes[0], Rewrite):
        raise TypeError(f"the walk's own pod is not rewritten: {outcomes[0]}")
    return walk


def _verdict() -> Walk:
    """Attribute and judge a pod that has been over its limit for a while on a card that is full."""
    world = World()
    world.add(pod_on_node("trainer"), GIB)
    world.settle_in()
    world.hold("trainer", 5 * GIB)
    world.free[0] = 0
    world.run(SECONDS_OVER)
    walk = walk_of(world.tick)
    if not any(item.over for item in world.decision.verdicts):
        raise TypeError(f"the walk's own pod is not over its limit: {world.decision}")
    return walk
