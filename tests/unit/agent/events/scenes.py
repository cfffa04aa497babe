"""A pod over its limit, for somebody to talk about."""

from typing import Any

from agent.events.episodes import Notice
from agent.model.decision import Outcome, Verdict
from agent.model.pod import PodOnNode
from agent.model.use import CardUse, PodOnCard, ProcessUse
from gpufence.quantity import GIB
from tests.support.agent.builders import CARDS, memory, on_card, pod


def process(pid: int, used: int | None, container: str = "main") -> ProcessUse:
    return ProcessUse(pid, used, None, "uid-a", container, confirmed=True)


def use(item: PodOnNode | None = None, **more: Any) -> PodOnCard:
    fields: dict[str, Any] = {"containers": {"main": 4 * GIB, "aside": 1}, "report_over": True}
    processes = (process(7, 4 * GIB), process(8, 1, "aside"))
    return on_card(item or pod(), 4 * GIB + 1, *processes, **fields | more)


def card(*processes: ProcessUse) -> CardUse:
    return CardUse(
        CARDS[0], memory(), 0.0, mps=False, pods={}, processes=processes, unattributed_bytes=0
    )


def verdict(outcome: Outcome = Outcome.HOLDING, **more: Any) -> Verdict:
    item = more.pop("pod", None) or pod()
    over = more.pop("over", True)
    fields: dict[str, Any] = {"use": use(item, report_over=over), "over_seconds": 35.4}
    return Verdict(item, outcome, **fields | more)


def text(found: tuple[Notice, ...]) -> str:
    (only,) = found
    return f"{only.reason}: {only.message}"
