"""
Counting that stays small.
"""

from __future__ import annotations

from agent.loop.counts import MOST_NAMESPACES, OTHERS, with_violations
from agent.model.decision import Decision, Outcome, Verdict
from agent.model.memory import Bucket, Memory, PodMemory, Watch
from agent.model.use import CardUse
from gpufence.mode import Mode
from tests.support.agent.builders import CARDS, pod

CARD = CardUse(CARDS[0], None, 0.0, mps=False, pods={}, processes=(), unattributed_bytes=None)


def counted(
    before: dict[tuple[str, str], int], verdict: Verdict, since: float | None = 5.0
) -> dict[tuple[str, str], int]:
    watch = Watch(1, report=Bucket(1.0, since is not None, 5.0, since))
    memory = Memory(0.0, {verdict.pod.uid: PodMemory(Mode.EVICT, watches={"GPU-0": watch})})
    decision = Decision(0.0, (verdict,), (), None, frozenset(), {})
    return dict(with_violations(before, decision, memory, {}))


def over(**more: object) -> Verdict:
    return Verdict(pod(**more), Outcome.HOLDING, CARD, over=True)  # type: ignore[arg-type] # any field


def test_a_new_violation_counts_for_its_namespace_and_mode() -> None:
    """
    Each counts by where it happened and on which rung.
    """
    assert {("team-a", "cap"): 1} == counted({}, over(mode=Mode.CAP))


def test_too_many_namespaces_are_counted_together() -> None:
    """
    Beyond the bound, namespaces share one line for each mode.
    """
    full = {(f"n{number}", "evict"): 1 for number in range(MOST_NAMESPACES)}
    found = counted(full, over(namespace="late"))

    assert 1 == found[OTHERS, "evict"]
    assert ("late", "evict") not in found


def test_what_is_not_over_is_not_counted() -> None:
    """
    Verdicts within their limits, without a card, or without a beginning do not count.
    """
    assert {} == counted({}, Verdict(pod(), Outcome.WITHIN, CARD))
    assert {} == counted({}, Verdict(pod(), Outcome.HOLDING, over=True))
    assert {} == counted({}, over(), since=None)
