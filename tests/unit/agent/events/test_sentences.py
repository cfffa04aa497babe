"""
Every sentence the agent says, once and in full, in `sentences.txt` beside this file.

After a change on purpose: `GPUFENCE_GOLDEN=write make test`, then read the difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.events import sentences
from agent.events.episodes import Notice
from agent.events.notices import notices_of_act
from agent.model.decision import (
    Action,
    ActResult,
    Answer,
    Blame,
    CardFinding,
    ContainerExcess,
    Ineffective,
    Outcome,
)
from agent.model.memory import Refusals
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, pod
from tests.support.golden import assert_reviewed
from tests.unit.agent.events.scenes import card, process, verdict

FILE = Path(__file__).parent / "sentences.txt"
STAYING = (
    Outcome.HOLDING,
    Outcome.TOLERATED,
    Outcome.EXEMPT,
    Outcome.NOT_ENFORCED,
    Outcome.MPS,
    Outcome.ONLY_WHEN_SHORT,
    Outcome.UNINJECTED,
    Outcome.OTHER_CARD,
    Outcome.TERMINATING,
)
BUDGET = ActResult(Answer.BLOCKED, detail="Cannot evict pod as it would violate the budget.")


def of_pods() -> Iterator[tuple[str, tuple[Notice, ...]]]:
    exempt = pod(exempt="it is a mirror pod")
    for outcome in STAYING:
        yield f"over, {outcome}", sentences.limit_exceeded(verdict(outcome, pod=exempt))
    least = verdict()
    assert least.use is not None
    unknown = least._replace(use=least.use._replace(used_bytes=None))
    yield "over, by what is known of its processes", sentences.limit_exceeded(unknown)
    capped, observed = verdict(pod=pod(mode=Mode.CAP)), pod(mode=Mode.OBSERVE)
    yield "over, in a mode below evict", sentences.limit_exceeded(capped)
    yield "would evict", sentences.would_evict(verdict(Outcome.WOULD_EVICT, pod=observed))
    gone, short = verdict(Outcome.EVICT), verdict(Outcome.EVICT, by_shortage=True)
    yield "evicted", notices_of_act(gone, ActResult(Answer.ACCEPTED))
    yield "evicted for a shortage", notices_of_act(short, ActResult(Answer.ACCEPTED))
    yield "refused by a budget", notices_of_act(verdict(), BUDGET)
    yield "failed", notices_of_act(verdict(), ActResult(Answer.FAILED, detail="403"))
    yield "stuck", sentences.termination_stuck(verdict(Outcome.STUCK, pod=pod(terminating=True)))
    full = least._replace(use=least.use._replace(refusals=Refusals(too_large=True)))
    yield "stuck, too large to end", sentences.termination_stuck(full)
    yield "too large to end", notices_of_act(verdict(), ActResult(Answer.TOO_LARGE, detail="500"))
    within, part = verdict(Outcome.WITHIN, over=False), ContainerExcess("aside", 1200 * MIB, GIB)
    yield "container over its part", sentences.container_exceeded(within, part)
    above = Ineffective("main", 7, 4 * GIB, 2662 * MIB)
    yield "process above its cap", sentences.cap_ineffective(verdict(), above)
    yield "fractions of a larger card", sentences.cap_too_low(within, 288 * GIB)
    for why in ("", "no container asks for GPU memory in a way gpufence knows"):
        bare = verdict(Outcome.UNDECLARED, pod=pod(undeclared=why), over=False)
        yield "without a limit", sentences.undeclared(bare)


def causes() -> Iterator[tuple[str, Blame]]:
    yield "a namespace without a mode", Blame(GIB, pod("b", mode=None))
    yield "a lower mode", Blame(GIB, pod("b", mode=Mode.CAP))
    yield "an exempt pod", Blame(GIB, pod("b", exempt="it is a mirror pod"))
    yield "no limit", Blame(GIB, pod("b", limit=None))
    yield "a pod that does not end", Blame(GIB, pod("b", terminating=True))
    yield "processes of no pod", Blame(GIB)
    yield "hidden memory", Blame(GIB, hidden=True)


def of_the_node() -> Iterator[tuple[str, tuple[Notice, ...]]]:
    full, silent = card(), replace(card(), memory=None)
    for label, use in (("too many limits", full), ("the same, size from its description", silent)):
        finding = CardFinding(use, 20 * GIB, overcommitted=True)
        yield label, (sentences.overcommitted("n1", finding),)
    nobodys = card(process(5, GIB)._replace(pod_uid=""), process(7, GIB))
    finding = CardFinding(nobodys, 0, overcommitted=False, unattributed_bytes=GIB)
    yield "memory of no pod", (sentences.unattributed("n1", finding),)
    for label, cause in causes():
        yield f"short, {label}", (sentences.short("n1", CARDS[0], 2 * GIB, cause),)
    yield "no driver", (sentences.nvml_unavailable("n1", "driver not loaded", 130),)
    yield "a card is listed too seldom", (sentences.unjudged("n1", CARDS[1], 12),)
    yield "a card is lost", (sentences.card_unavailable("n1", CARDS[1], "off the bus", 20),)
    yield "cards without a name", (sentences.cards_unidentified("n1", "index 3: no access", 20),)


def test_every_sentence_is_as_reviewed() -> None:
    """
    Each says who holds how much where, what the limit is, since when, and what to do about it.
    """
    page = "".join(
        f"[{label}]\n{item.reason} on {item.regarding.kind} {item.regarding.name}: {item.message}\n"
        for label, notices in (*of_pods(), *of_the_node())
        for item in notices
    )

    assert_reviewed(FILE, page)


@pytest.mark.parametrize(
    ("outcome", "action", "answer"),
    [
        (Outcome.EVICT, Action.EVICT, Answer.GONE),
        (Outcome.EVICT, Action.EVICT, Answer.REPLACED),
        (Outcome.EVICT, Action.EVICT, Answer.CANCELLED),
        (Outcome.STUCK, Action.KILL, Answer.ACCEPTED),
    ],
)
def test_answers_that_are_not_told(outcome: Outcome, action: Action, answer: Answer) -> None:
    """
    A pod that has left by itself is not talked about, and a kill is told by the stuck pod's Event.
    """
    assert () == notices_of_act(verdict(outcome, action=action), ActResult(answer))
