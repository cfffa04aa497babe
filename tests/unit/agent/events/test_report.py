"""Who is told what, in one line that fits."""

from dataclasses import replace
from typing import Any

import pytest

from agent.events import sentences
from agent.events.notices import notices, notices_of_act
from agent.model.decision import (
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
from gpufence import names
from gpufence.event_text import MOST_SAID
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import LIMIT, controller, on_card, pod
from tests.unit.agent.events.scenes import card, process, text, use, verdict


def decision(*verdicts: Verdict, **findings: CardFinding) -> Decision:
    return Decision(0.0, verdicts, (), None, frozenset(), findings)


def reasons(*verdicts: Verdict, **more: Any) -> list[str]:
    return [item.reason for item in notices(decision(*verdicts, **more), "n1")]


def test_eviction_suspended() -> None:
    """Suspended evictions are told on the node, for each measure with how many pods are over."""
    suspended = (Suspension("gpushare, units of 1Gi", 3, 5), Suspension("", 4, 7))
    found = notices(replace(decision(), suspensions=suspended), "n1")

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
