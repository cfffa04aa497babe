"""What is said again, and what only when it changes."""

from dataclasses import replace

from agent.events.notices import NOTHING_ANNOUNCED, REPEAT_SECONDS, Announced, new_notices
from agent.model.decision import (
    Blame,
    CardFinding,
    ContainerExcess,
    Decision,
    Ineffective,
    Outcome,
    Shortage,
    Suspension,
)
from gpufence import names
from tests.unit.agent.events.scenes import card, verdict

FINDINGS = {"GPU-0": CardFinding(card(), 1, overcommitted=False)}
OVER = Decision(100.0, (verdict(),), (), None, frozenset(), FINDINGS)


def after(decision: Decision, before: Announced | None = None) -> tuple[Announced, list[str]]:
    if before is None:
        before, _ = new_notices(NOTHING_ANNOUNCED, OVER, "n1")
    before, found = new_notices(before, decision, "n1")
    return before, [item.reason for item in found]


def test_the_first_decision_is_news() -> None:
    """What gives cause for the first time is said."""
    assert [names.LIMIT_EXCEEDED] == after(OVER, NOTHING_ANNOUNCED)[1]


def test_the_same_again_is_no_news_until_the_damping_has_to_know() -> None:
    """A lasting cause is said again after a while, whatever its figures are by then."""
    before, soon = after(replace(OVER, at=101.0, verdicts=(verdict(over_seconds=40.0),)))
    _, later = after(replace(OVER, at=100.0 + REPEAT_SECONDS), before)

    assert [] == soon
    assert [names.LIMIT_EXCEEDED] == later


def test_every_change_of_a_cause_is_news() -> None:
    """Another outcome, suspension, finding, container or process is said at once."""
    soon = replace(OVER, at=101.0)
    blamed = Shortage(1, frozenset(), Blame(1, hidden=True))
    excess, found = ContainerExcess("aside", 2, 1), Ineffective("main", 7, 2, 1)
    changed = [
        replace(soon, verdicts=(verdict(Outcome.WOULD_EVICT),)),
        replace(soon, verdicts=(verdict(containers_over=(excess,)),)),
        replace(soon, verdicts=(verdict(ineffective=(found,)),)),
        replace(soon, verdicts=(verdict(), verdict(Outcome.UNDECLARED))),
        replace(soon, suspensions=(Suspension("hami", 3, 4),)),
        replace(soon, findings={"GPU-0": replace(OVER.findings["GPU-0"], overcommitted=True)}),
        replace(soon, findings={"GPU-0": replace(OVER.findings["GPU-0"], shortage=blamed)}),
    ]

    assert [True] * 7 == [bool(after(decision)[1]) for decision in changed]
