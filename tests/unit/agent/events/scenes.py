"""
A pod over its limit, for somebody to talk about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.model.decision import (
    Outcome,
    Verdict,
)
from agent.model.use import CardUse, PodUse, ProcessUse
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, LIMIT, memory, pod

if TYPE_CHECKING:
    from agent.events import Notice

HELD = (
    "containers main, aside hold 4097 MiB on card 0 (GPU-0), the pod's limit is 3072 MiB, "
    "over for 35 s by 2 processes (PID 7, 8)"
)
REMEDY = "let the framework use less, or raise gpufence.io/memory or the requested amount"


def process(pid: int, used: int | None, container: str = "main") -> ProcessUse:
    return ProcessUse(pid, used, None, "uid-a", container, confirmed=True)


def use() -> PodUse:
    processes = (process(7, 4 * GIB), process(8, 1, "aside"))
    return PodUse("uid-a", 4 * GIB + 1, 4 * GIB + 1, processes, {"main": 4 * GIB, "aside": 1})


def card(*processes: ProcessUse) -> CardUse:
    return CardUse(
        CARDS[0], memory(), 0.0, mps=False, pods={}, processes=processes, unattributed_bytes=0
    )


def verdict(outcome: Outcome = Outcome.HOLDING, **more: Any) -> Verdict:
    said: dict[str, Any] = {
        "pod": pod(),
        "card": card(),
        "use": use(),
        "limit_bytes": LIMIT,
        "over": True,
        "over_seconds": 35.4,
    }
    return Verdict(outcome=outcome, **said | more)


def text(found: tuple[Notice, ...]) -> str:
    (only,) = found
    return f"{only.reason}: {only.message}"
