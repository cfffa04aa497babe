"""Every sentence the agent says: in full in sentences.txt, and in one line that fits."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.events import sentences
from agent.events.episodes import Notice
from agent.events.notices import NOTHING_ANNOUNCED, new_notices, notices_of_act
from agent.model.decision import (
    Action,
    ActResult,
    Answer,
    Blame,
    CardFinding,
    ContainerExcess,
    Decision,
    Ineffective,
    Outcome,
    Shortage,
    Suspension,
    Verdict,
)
from agent.model.memory import Refusals
from agent.model.pod import PodLimit, PodOnNode
from agent.model.use import CardUse, PodOnCard, ProcessUse
from gpufence import names
from gpufence.event_text import MOST_SAID
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import CARDS, LIMIT, controller, memory, on_card, pod
from tests.support.golden import assert_reviewed

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
    borrowed = loan()
    yield "asked back", sentences.recalled(borrowed)
    yield "asked back, in time", sentences.recalled(borrowed._replace(due_seconds=12.0))
    capped = borrowed._replace(pod=pod(mode=Mode.CAP))
    yield "asked back, in a mode below evict", sentences.recalled(capped)
    gone = borrowed._replace(outcome=Outcome.EVICT, by_shortage=True)
    yield "evicted for a loan", notices_of_act(gone, ActResult(Answer.ACCEPTED))
    lender = on_card(pod("b"), GIB)
    yield "lent", sentences.lent(lender)
    yield "lent, and free again", sentences.returned(lender)
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
    yield "a loan in a lower mode", Blame(GIB, pod("b", mode=Mode.CAP), above="request")
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


def loan() -> Verdict:
    """Return what is said of a pod that borrows 2 GiB that are missed."""
    item = pod(limits={CARDS[0].uuid: PodLimit(6 * GIB, share_bytes=LIMIT)})
    use = on_card(
        item, LIMIT + 2 * GIB, process(7, 5 * GIB), containers={"main": 5 * GIB}
    )._replace(borrowed_bytes=2 * GIB)
    return Verdict(item, Outcome.RECALLED, use, recalled=True)


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


def decision(*verdicts: Verdict, **findings: CardFinding) -> Decision:
    return Decision(0.0, verdicts, (), None, frozenset(), findings)


def reasons(*verdicts: Verdict, **more: Any) -> list[str]:
    return [
        item.reason for item in new_notices(NOTHING_ANNOUNCED, decision(*verdicts, **more), "n1")[1]
    ]


def test_eviction_suspended() -> None:
    """Suspended evictions are told on the node, for each measure with how many pods are over."""
    suspended = (Suspension("gpushare, units of 1Gi", 3, 5), Suspension("", 4, 7))
    found = new_notices(NOTHING_ANNOUNCED, replace(decision(), suspensions=suspended), "n1")[1]

    expected = (
        "Evictions of pods measured in gpushare, units of 1Gi are suspended but under memory "
        "pressure: 3 of 5 are over their limits at once. Probably a wrong unit or limit: compare "
        "the pods' gpufence.io/summary with what they requested."
    )
    assert [names.EVICTION_SUSPENDED] * 2 == [item.reason for item in found]
    assert expected == found[0].message
    assert "measured in an unknown unit" in found[1].message


EXCESS: dict[str, Any] = {
    "containers_over": (ContainerExcess("aside", 2 * GIB, GIB),),
    "ineffective": (Ineffective("main", 7, GIB, MIB),),
}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (verdict(Outcome.IDLE, over=False), []),
        (verdict(Outcome.EVICT), [names.LIMIT_EXCEEDED]),
        (verdict(Outcome.WOULD_EVICT), [names.WOULD_EVICT]),
        (verdict(Outcome.STUCK), [names.TERMINATION_STUCK]),
        (verdict(Outcome.UNDECLARED, over=False), [names.UNDECLARED]),
        (
            verdict(Outcome.WITHIN, over=False, **EXCESS),
            [names.LIMIT_EXCEEDED, names.CAP_INEFFECTIVE],
        ),
        (verdict(**EXCESS), [names.LIMIT_EXCEEDED, names.CAP_INEFFECTIVE]),
        (
            verdict(Outcome.WITHIN, over=False, told_larger_bytes=288 * GIB),
            [names.CAP_TOO_LOW],
        ),
    ],
)
def test_what_a_verdict_gives_cause_to_say(found: Verdict, expected: list[str]) -> None:
    """Each is told by its reasons: a container over its part where the pod is not, a cap always."""
    assert expected == reasons(found)


def test_findings_are_told() -> None:
    """Every card with something to say is told on the node."""
    quiet = CardFinding(card(), 0, overcommitted=False)
    shortage = Shortage(GIB, frozenset(), Blame(GIB))
    loud = CardFinding(card(), 20 * GIB, overcommitted=True, unattributed_bytes=GIB)
    loud = replace(loud, shortage=shortage)

    expected = [names.OVERCOMMITTED, names.UNATTRIBUTED, names.SHORT]
    assert expected == reasons(one=quiet, two=loud)


def test_owner_is_told_too() -> None:
    """The controller hears of evictions as well, in one Event of all its pods, and of no more."""
    mine = verdict(pod=pod(controller=controller()))
    found = sentences.evicted(mine)

    assert ["ReplicaSet", "Pod"] == [item.regarding.kind for item in found]
    assert 1 == len({item.message for item in found})
    assert ["", "GPU-0/"] == [item.topic for item in found]
    assert ["Pod"] == [item.regarding.kind for item in sentences.limit_exceeded(mine)]


def test_longest_names() -> None:
    """The longest names Kubernetes allows leave the message in one line and its remedy readable."""
    containers = [f"{number:02}".ljust(63, "x") for number in range(20)]
    processes = tuple(process(4_000_000 + number, GIB) for number in range(950))
    item = pod("p" * 253, controller=controller())
    held = on_card(item, LIMIT, *processes, containers=dict.fromkeys(containers, GIB))
    result = ActResult(Answer.BLOCKED, detail="no " * 3000)
    found = notices_of_act(verdict(use=held, pod=item), result)

    assert all(len(item.message) <= MOST_SAID for item in found)
    assert "allow a disruption" in found[0].message


def test_nothing_but_one_line() -> None:
    """Whatever a server or a name contains, a message is one printable line of legal length."""
    short = sentences.nvml_unavailable("n" * 2000, "bad\nline\x00", 1)
    long = sentences.limit_exceeded(verdict(use=use()._replace(containers={"x" * 2000: 1})))

    assert "bad?line?" in short.message
    assert "container xxxxxxxxx...xxxxxxxx, PID" in long[0].message


def test_unknown_parts() -> None:
    """What is unknown reads as unknown, and says how it would become known."""
    found = Verdict(pod(), Outcome.UNKNOWN)

    expected = (
        "GPUMemoryEvicted: Evicted: unknown of unknown on an unknown card, for 0 s. Request an "
        "amount of GPU memory, or set gpufence.io/memory. kubectl gpufence explain a"
    )
    assert expected == text(sentences.evicted(found))
    assert "Holds unknown without a limit" in text(sentences.undeclared(found))


def test_one_container() -> None:
    """A single container and process are not spoken of as many."""
    one = on_card(pod(), GIB, process(7, GIB), containers={"main": GIB})

    assert "by container main, PID 7, for 35 s." in text(sentences.evicted(verdict(use=one)))
