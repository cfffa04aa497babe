"""
How many functions and modules of ours the walks of docs/architecture.md run through: a pod that is
created, a verdict, an eviction, a leaf that is renewed, a release, `kubectl gpufence top`.

A change of the order of things takes reading all of them first, so the numbers may not grow
unnoticed.
"""

import asyncio
import io
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from certs.ensure import Report, Run, RunOptions
from certs.material import DAY
from controller.decide import decide
from controller.model import Announcement, NoticeGiven, ReleaseDecision, ReleaseMemory, ReleaseRules
from gpufence.mode import Mode
from gpufence.nodes import read_node
from gpufence.quantity import GIB
from gpufence.settings import read_settings
from tests.support.agent.builders import pod as pod_on_node
from tests.support.agent.node import running
from tests.support.agent.world import World
from tests.support.builders import card, gpushare, node, pod
from tests.support.certs import NAMES, NOW, FakeClock, FakeFleet, installed, unheard
from tests.support.certs import world as authority_world
from tests.support.plugin import Desk
from tests.support.release import NOW as RELEASE_NOW
from tests.support.release import cluster as released_cluster
from tests.support.release import idle_pod, owner_state
from tests.support.rewriting import encoded, forget, review
from tests.support.servers import ApiServer
from tests.support.tree import PACKAGES
from webhook.cluster import ClusterView
from webhook.endpoint import Endpoint
from webhook.fleet import Fleet
from webhook.hooks import PodHook
from webhook.metrics import Account, Metrics, RequestLog
from webhook.policy import WebhookPolicy
from webhook.rewrite import Rewrite, rewrite
from webhook.settings import PodSettings

SECONDS_OVER = 10
T = TypeVar("T")
Through = Callable[[Callable[[], object]], T]
"""What is done with a call that is a walk: it is counted, or its modules are listed."""


class Walk(NamedTuple):
    functions: int
    modules: int


RECORDED = {
    "rewrite": Walk(90, 22),
    "create": Walk(117, 29),
    "verdict": Walk(38, 8),
    "eviction": Walk(140, 24),
    "renewal": Walk(64, 9),
    "release": Walk(35, 6),
    "top": Walk(206, 39),
}
"""What was counted last; none may grow, and a change that brings one down writes it here."""

WANTED = {
    "rewrite": Walk(90, 20),
    "create": Walk(110, 25),
    "verdict": Walk(38, 8),
    "eviction": Walk(110, 20),
    "renewal": Walk(63, 9),
    "release": Walk(35, 6),
    "top": Walk(165, 28),
}


def too_long(counted: Walk, recorded: Walk) -> bool:
    """Return whether a walk has grown."""
    return any(now > before for now, before in zip(counted, recorded, strict=True))


def walks() -> dict[str, Walk]:
    """Count all walks; only in a process that has not yet taken them is no cache filled."""
    taken = (_rewrite, _create, _verdict, _eviction, _renewal, _release, _top)
    return dict(zip(RECORDED, (walk(walk_of) for walk in taken), strict=True))


def walk_of(call: Callable[[], object]) -> Walk:
    """
    Count the named functions that a call runs through, without parts that dataclasses make. The
    body of a class, which runs where its module is first loaded on the way, is no function.
    """
    calls = [(module, code) for module, code in _calls(call) if code.co_flags & CO_OPTIMIZED]
    functions = {(module, code.co_qualname) for module, code in calls}
    return Walk(len(functions), len({module for module, _ in functions}))


def modules_of(call: Callable[[], object]) -> list[str]:
    """Return the modules that one call runs through, in the order of their first function."""
    calls = _calls(call)
    return list(dict.fromkeys(module for module, code in calls if code.co_flags & CO_OPTIMIZED))


def orders() -> dict[str, list[str]]:
    """Return the modules of the walks that the page of the architecture leads along."""
    taken = (_create, _eviction, _release, _top, _renewal)
    return {walk.__name__.strip("_"): walk(modules_of) for walk in taken}


def _calls(call: Callable[[], object]) -> dict[tuple[str, CodeType], None]:
    seen: dict[tuple[str, CodeType], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        written = not code.co_filename.startswith("<") and not code.co_name.startswith("<")
        if event == "call" and written and module.partition(".")[0] in PACKAGES:
            seen[module, code] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def _rewrite(through: Through[T]) -> T:
    """Rewrite a PyTorch pod with a variable, on a cluster of two kinds of cards."""
    outcomes: list[object] = []
    item, fleet, policy = _trainer(), _fleet(), _pod_policy()
    walk = through(lambda: outcomes.append(rewrite(item, Mode.CAP, {}, fleet, policy)))
    if not isinstance(outcomes[0], Rewrite):
        raise TypeError(f"the walk's own pod is not rewritten: {outcomes[0]}")
    return walk


def _create(through: Through[T]) -> T:
    """The same from the body of the request to the answer."""
    body = encoded(review(object=_trainer()))
    hook = PodHook(Mode.CAP, _TwoCards(), _pod_policy())
    account = Account(Metrics(("cap",)), RequestLog(logging.DEBUG, io.BytesIO()))
    endpoint = Endpoint(_elsewhere, {"/cap": ("cap", hook)}, account, is_draining=lambda: False)
    sent: list[MutableMapping[str, Any]] = []
    forget()  # what the walk before has made

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/cap", "method": "POST", "headers": []}
    walk = through(lambda: asyncio.run(endpoint(scope, receive, send)))
    if b'"patch"' not in sent[-1]["body"]:
        raise TypeError(f"the walk's own pod is not rewritten: {sent[-1]}")
    return walk


class _TwoCards(ClusterView):
    def __init__(self) -> None:
        super().__init__()
        self._fleet = _fleet()  # made when nodes change, not when a pod is created


async def _elsewhere(scope: object, receive: object, send: object) -> None:
    raise AssertionError(scope, receive, send)


def _trainer() -> dict[str, Any]:
    trainer = gpushare(units="3") | {
        "image": "pytorch/pytorch:2.4.0",
        "command": ["python", "train.py"],
        "env": [{"name": "OMP_NUM_THREADS", "value": "4"}],
    }
    return pod(trainer)


def _pod_policy() -> WebhookPolicy:
    return read_settings(PodSettings, {"GPUFENCE_DEFAULT_CARD": "15360Mi"}).policy("pass\n")


def _fleet() -> Fleet:
    large = card(1, memory_bytes=80 * GIB, model="NVIDIA H100", compute_capability=(9, 0))
    nodes = [read_node(node(each), _pod_policy().default.units) for each in (card(), large)]
    return Fleet([each for each in nodes if each is not None])


def _verdict(through: Through[T]) -> T:
    """Attribute and judge a pod that has been over its limit for a while on a card that is full."""
    world = World()
    world.add(pod_on_node("trainer"), GIB)
    world.settle_in()
    world.hold("trainer", 5 * GIB)
    world.free[0] = 0
    world.run(SECONDS_OVER)
    walk = through(world.tick)
    if not any(item.over for item in world.decision.verdicts):
        raise TypeError(f"the walk's own pod is not over its limit: {world.decision}")
    return walk


def _eviction(through: Through[T]) -> T:
    """Tick from a pod that comes over its limit to the answer of its eviction, remembered."""
    with running() as ground:
        ground.add(pod_on_node("trainer"), GIB, pid=1)
        ground.tick(3)
        ground.add(pod_on_node("trainer"), 5 * GIB, pid=1)

        def act() -> None:
            ground.tick_until_acted()
            ground.tick()

        return through(act)


def _renewal(through: Through[T]) -> T:
    """Renew a leaf that is due, from reading the Secrets to every replica serving it."""
    api = installed()
    fleet = FakeFleet(api)

    def run(at: float) -> Report:
        wished = RunOptions(endpoints=fleet.endpoints)
        return Run(authority_world(api, FakeClock(at), fleet), NAMES, wished, unheard).ensure()

    run(NOW)
    reports: list[Report] = []
    walk = through(lambda: reports.append(run(NOW + 60 * DAY)))
    if not reports[0].done:
        raise TypeError("the walk's own leaf is not renewed")
    return walk


def _release(through: Through[T]) -> T:
    """Decide the release of an owner that is idle and announced."""
    idle = owner_state(idle_pod())
    told = NoticeGiven(Announcement(RELEASE_NOW - 300, RELEASE_NOW))
    memory = replace(ReleaseMemory(), announced={idle.uid: told})
    state = released_cluster(idle)
    decisions: list[ReleaseDecision] = []
    walk = through(lambda: decisions.append(decide(state, memory, ReleaseRules())))
    if not decisions[0].acts:
        raise TypeError("the walk's own owner is not released")
    return walk


def _top(through: Through[T]) -> T:
    """Show one pod of a cluster of one node and one agent."""
    with ApiServer() as server, tempfile.TemporaryDirectory() as folder:
        desk = Desk(server, Path(folder))
        return through(lambda: desk.run("top"))
