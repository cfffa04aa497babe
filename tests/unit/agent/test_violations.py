"""Counting violations, in numbers that stay small."""

from agent.model.decision import Decision, Outcome, Verdict
from agent.model.memory import Bucket, Watch
from agent.model.state import MOST_NAMESPACES, OTHERS, count_violations
from gpufence.mode import Mode
from gpufence.quantity import GIB
from tests.support.agent.builders import on_card, pod


def counted(before: dict[tuple[str, str], int], verdict: Verdict) -> dict[tuple[str, str], int]:
    decision = Decision(0.0, (verdict,), (), None, frozenset(), {})
    counts, running = count_violations(before, {}, decision)
    assert counts == count_violations(counts, running, decision)[0]
    return dict(counts)


def over(since: float | None = 5.0, **more: object) -> Verdict:
    item = pod(**more)  # type: ignore[arg-type] # any field
    watch = Watch(report=Bucket(1.0, since is not None, 5.0, since))
    return Verdict(item, Outcome.HOLDING, on_card(item, GIB, report_over=True, watch=watch))


def test_a_new_violation_counts_once_for_its_namespace_and_mode() -> None:
    """Each counts by where it happened and on which rung, and not again while it lasts."""
    assert {("team-a", "cap"): 1} == counted({}, over(mode=Mode.CAP))


def test_too_many_namespaces_are_counted_together() -> None:
    """Beyond the bound, namespaces share one line for each mode."""
    full = {(f"n{number}", "evict"): 1 for number in range(MOST_NAMESPACES)}
    counts = counted(full, over(namespace="late"))

    assert 1 == counts[OTHERS, "evict"]
    assert ("late", "evict") not in counts


def test_what_is_not_over_is_not_counted() -> None:
    """Verdicts within their limits, without a card, or without a beginning do not count."""
    assert {} == counted({}, Verdict(pod(), Outcome.WITHIN, on_card(pod(), GIB)))
    assert {} == counted({}, Verdict(pod(), Outcome.IDLE))
    assert {} == counted({}, over(since=None))
