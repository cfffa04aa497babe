"""
PURE. The list of a card's processes: when it is due, and what became of the last attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent.model.sample import (
    NO_TROUBLE,
    CardMemory,
    ProcessList,
    Trouble,
    TroubleCode,
    merged,
)
from agent.nvml.faults import lasts, trouble_of
from agent.nvml.protocol import Failure, Listed
from gpufence.quantity import GIB

if TYPE_CHECKING:
    from agent.model.sample import GpuProcess

UNCHARGED_BYTES: Final = GIB
"""
More memory than a card uses when nobody holds any, beside what is reserved.
"""

_UNCHARGED: Final = Trouble(
    "its memory is in use and the driver charges it to nobody; set hostPID on the agent's pod, or "
    "look for processes that died without giving memory back",
    TroubleCode.UNCHARGED,
)


@dataclass(frozen=True, slots=True)
class Pace:
    """
    How often lists are renewed; the settings say why.
    """

    interval_seconds: float
    list_seconds: float
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class Listing:
    """
    The last attempt to list a card's processes, and the card's use then.

    Without processes it failed, as `trouble` says; `again` if the next sample shall try again.
    """

    asked_at: float
    used_bytes: int | None
    processes: ProcessList | None = None
    mps: bool = False
    trouble: Trouble = NO_TROUBLE
    again: bool = False


def list_is_due(last: Listing | None, used_bytes: int | None, now: float, pace: Pace) -> bool:
    """
    Tell whether a card that is no suspect needs a new list in this sample.

    Half an interval is allowed for, so that a sample that comes a little early does not put the
    list off to the next one.
    """
    if last is None or last.again:
        return True
    if now - last.asked_at + pace.interval_seconds / 2 >= pace.list_seconds:
        return True
    if used_bytes is None or last.used_bytes is None:
        return (used_bytes is None) != (last.used_bytes is None)
    return abs(used_bytes - last.used_bytes) > pace.moved_bytes


def new_listing(
    answer: Listed | Failure | Trouble, memory: CardMemory | None, now: float, last: Listing | None
) -> Listing:
    """
    Record an attempt by its answer, or by the reason why there is none.
    """
    used = None if memory is None else memory.used_bytes
    if isinstance(answer, Trouble):
        return Listing(now, used, trouble=answer, again=True)
    if isinstance(answer, Failure):
        return Listing(now, used, trouble=trouble_of(answer), again=not lasts(answer))
    processes = merged(answer.compute, answer.graphics, answer.mps)
    if _charges_nobody(processes, memory):
        first = last is None or last.trouble.code is not TroubleCode.UNCHARGED
        return Listing(now, used, mps=bool(answer.mps), trouble=_UNCHARGED, again=first)
    return Listing(now, used, ProcessList(answer.at, processes), mps=bool(answer.mps))


def _charges_nobody(processes: tuple[GpuProcess, ...], memory: CardMemory | None) -> bool:
    """
    Tell whether a card in use is charged to nobody: that is no idle card.

    Drivers leave out processes that the caller's PID namespace does not show, or show them with 0
    bytes, and call that a success.
    """
    if memory is None or any(item.used_bytes != 0 for item in processes):
        return False
    return memory.used_bytes - (memory.reserved_bytes or 0) > UNCHARGED_BYTES
