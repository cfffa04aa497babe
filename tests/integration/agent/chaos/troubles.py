"""Everything that can go wrong, made to, and written down for the reference model."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Final

from gpufence import names
from gpufence.quantity import MIB
from kube import core
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from tests.integration.agent.chaos.people import OF_CARD, Disturbance, Trouble
from tests.integration.agent.chaos.stage import READY_SECONDS, START_PAUSE_SECONDS, Stage
from tests.integration.agent.chaos.truth import Blind, Span

FULL_FREE: Final = 300 * MIB
CHILD_SECONDS: Final = 2.0
"""A new child, or one whose driver works again, has read every card within that time."""
WATCH_SECONDS: Final = 10.0
"""After an outage every watch has been opened again within that time."""
DOUBT_SECONDS: Final = 2.0
"""What pods do is known again within that time after any trouble."""
WORD_SECONDS: Final = 1.0
"""The operator's word reaches the agent within that time."""

_LIST = "nvmlDeviceGetComputeRunningProcesses"
_MEMORY = "nvmlDeviceGetMemoryInfo"
_FAULTS: Final[Mapping[Trouble, Fault]] = {
    Trouble.LIBRARY_CRASHES: Fault(FaultAction.CRASH, _MEMORY, times=1),
    Trouble.LIBRARY_HANGS: Fault(FaultAction.HANG, _MEMORY, times=1),
    Trouble.CARD_LOST: Fault.code(NvmlCode.GPU_IS_LOST),
    Trouble.LIST_REFUSED: Fault.code(NvmlCode.NO_PERMISSION, _LIST),
    Trouble.LIST_UNKNOWN: Fault(FaultAction.NOT_AVAILABLE, _LIST),
    Trouble.LIST_ZERO: Fault(FaultAction.ZERO, _LIST),
    Trouble.LIST_GARBLED: Fault(FaultAction.GARBLE, _LIST),
    Trouble.SLOW: Fault.delay(0.05),
}


@contextmanager
def trouble(stage: Stage, item: Disturbance) -> Iterator[None]:
    """Let something go wrong for as long as the block lasts."""
    begin = time.monotonic()
    place = item.card if item.trouble in {*OF_CARD, Trouble.CARD_FULL} else None
    if item.trouble not in _IN_SIGHT:
        stage.observer.doubt(math.inf, place)
    with _HANDS.get(item.trouble, _fault)(stage, item):
        yield
    if item.trouble not in _IN_SIGHT:
        stage.observer.doubt(time.monotonic() + DOUBT_SECONDS, place)
    if item.trouble in _AFTER:
        span = Span(begin, time.monotonic() + _AFTER[item.trouble])
        card = item.card if item.trouble in OF_CARD else None
        forbids = item.trouble is Trouble.POLICY_GONE
        stage.blinded(Blind(span, str(item.trouble), card, forbids=forbids))


@contextmanager
def _fault(stage: Stage, item: Disturbance) -> Iterator[None]:
    card = item.card if item.trouble in OF_CARD else None
    number = stage.node.state.faults.add(replace(_FAULTS[item.trouble], card=card))
    try:
        yield
    finally:
        stage.node.state.faults.remove(number)


@contextmanager
def _once(stage: Stage, item: Disturbance) -> Iterator[None]:
    """Let a single call crash or hang, and wait until the child that made it is replaced."""
    children = stage.agent.children()
    with _fault(stage, item):
        stage.agent.wait_until_gone(children)
    yield


@contextmanager
def _killed(stage: Stage, _: Disturbance) -> Iterator[None]:
    stage.agent.wait_until_gone(stage.agent.signal_child(signal.SIGKILL))
    yield


@contextmanager
def _stopped(stage: Stage, _: Disturbance) -> Iterator[None]:
    stage.agent.wait_until_gone(stage.agent.signal_child(signal.SIGSTOP))
    yield


@contextmanager
def _upgraded(stage: Stage, item: Disturbance) -> Iterator[None]:
    children = stage.agent.children()
    stage.node.state.upgrade_driver(f"580.{item.at:.0f}.1")
    stage.agent.wait_until_gone(children)
    yield


@contextmanager
def _full(stage: Stage, item: Disturbance) -> Iterator[None]:
    card = stage.node.state.cards[item.card]
    card.extra = max(card.room.free - FULL_FREE, 0)
    try:
        yield
    finally:
        card.extra = 0


@contextmanager
def _outage(stage: Stage, _: Disturbance) -> Iterator[None]:
    stage.plane.stop_api_server()
    try:
        yield
    finally:
        stage.plane.start_api_server()


@contextmanager
def _kill_switch(stage: Stage, _: Disturbance) -> Iterator[None]:
    stage.site.set_policy("cap")
    stopped_at = time.monotonic()
    yield
    stage.site.set_policy("evict")
    stage.restarted(stopped_at, WORD_SECONDS)


@contextmanager
def _policy_gone(stage: Stage, _: Disturbance) -> Iterator[None]:
    path = core("namespaces", names.SYSTEM_NAMESPACE, "configmaps", names.POLICY_CONFIGMAP)
    stage.client.delete(path)
    yield
    stage.site.set_policy("evict")


@contextmanager
def _agent_killed(stage: Stage, _: Disturbance) -> Iterator[None]:
    stage.agent.kill()
    stopped_at = time.monotonic()
    yield
    ready_after = START_PAUSE_SECONDS + READY_SECONDS
    stage.restarted(stopped_at, ready_after, START_PAUSE_SECONDS)
    stage.agent.start()


_HANDS: Final[Mapping[Trouble, Callable[[Stage, Disturbance], AbstractContextManager[None]]]] = {
    Trouble.CHILD_KILLED: _killed,
    Trouble.CHILD_STOPPED: _stopped,
    Trouble.LIBRARY_CRASHES: _once,
    Trouble.LIBRARY_HANGS: _once,
    Trouble.DRIVER_UPGRADED: _upgraded,
    Trouble.CARD_FULL: _full,
    Trouble.OUTAGE: _outage,
    Trouble.KILL_SWITCH: _kill_switch,
    Trouble.POLICY_GONE: _policy_gone,
    Trouble.AGENT_KILLED: _agent_killed,
}
_IN_SIGHT: Final = {Trouble.OUTAGE, Trouble.KILL_SWITCH, Trouble.POLICY_GONE}
"""The agent goes on seeing what pods do."""

_AFTER: Final[Mapping[Trouble, float]] = {
    **{
        item: CHILD_SECONDS
        for item in Trouble
        if item not in {Trouble.CARD_FULL, Trouble.KILL_SWITCH, Trouble.AGENT_KILLED}
    },
    Trouble.OUTAGE: WATCH_SECONDS,
    Trouble.POLICY_GONE: WORD_SECONDS,
}
"""
For how long a trouble is felt; a card that runs short is none, and what restarts is written down
as that.
"""
