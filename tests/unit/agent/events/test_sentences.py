"""
Every sentence the agent says, once and in full.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.events import notices_of_act, sentences
from agent.model.decision import (
    Action,
    ActResult,
    Answer,
    CardFinding,
    ContainerExcess,
    Ineffective,
    Outcome,
)
from gpufence import names
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import pod
from tests.unit.agent.events.scenes import HELD, REMEDY, card, process, text, verdict


@pytest.mark.parametrize(
    ("outcome", "follows"),
    [
        (Outcome.HOLDING, "it is evicted if this goes on"),
        (Outcome.TOLERATED, "within the margin for eviction, so it stays"),
        (Outcome.EXEMPT, "it is never evicted: it is a mirror pod"),
        (Outcome.NOT_ENFORCED, "its limit is implied and not enforced, so it stays"),
        (Outcome.MPS, "the card is shared through MPS, so it stays"),
        (Outcome.ONLY_WHEN_SHORT, "it is evicted only when the card is short of memory"),
        (
            Outcome.UNINJECTED,
            "the webhook never saw it, so it is evicted only to cure a shortage",
        ),
        (Outcome.TERMINATING, "it is terminating already"),
    ],
)
def test_limit_exceeded(outcome: Outcome, follows: str) -> None:
    """
    A pod over its limit is told who holds how much where, for how long, and what follows.
    """
    found = verdict(outcome, pod=pod(exempt="it is a mirror pod"))

    expected = f"GPUMemoryLimitExceeded: {HELD}; {follows}; {REMEDY}"
    assert expected == text(sentences.limit_exceeded(found))


def test_limit_exceeded_below_evict() -> None:
    """
    In a mode below evict the pod is told that it stays.
    """
    found = verdict(pod=pod(mode=Mode.CAP))

    expected = f"GPUMemoryLimitExceeded: {HELD}; mode cap: it stays; {REMEDY}"
    assert expected == text(sentences.limit_exceeded(found))


def test_would_evict() -> None:
    """
    A pod that a higher mode would evict is told so before the mode is raised.
    """
    found = verdict(Outcome.WOULD_EVICT, pod=pod(mode=Mode.OBSERVE))

    expected = (
        f"GPUMemoryWouldEvict: {HELD}; in mode evict the pod would be evicted now, in mode observe "
        f"it stays; {REMEDY} before the namespace's gpufence.io/mode is raised"
    )
    assert expected == text(sentences.would_evict(found))


@pytest.mark.parametrize(
    ("short", "why"), [(False, ""), (True, " and the card is short of memory for others")]
)
def test_evicted(short: bool, why: str) -> None:  # noqa: FBT001 - a column
    """
    An evicted pod is told why, and what lets the next one live.
    """
    found = verdict(Outcome.EVICT, by_shortage=short)

    expected = f"GPUMemoryEvicted: evicted: {HELD}{why}; {REMEDY}"
    assert expected == text(notices_of_act(found, ActResult(Answer.ACCEPTED)))


def test_eviction_blocked() -> None:
    """
    A budget's refusal is told with the server's words and what opens the budget.
    """
    result = ActResult(Answer.BLOCKED, detail="Cannot evict pod as it would violate the budget.")

    expected = (
        f"GPUMemoryEvictionBlocked: {HELD}, and the API server refuses the eviction: Cannot evict "
        "pod as it would violate the budget.; it is asked again; let exactly one "
        "PodDisruptionBudget match the pod and allow a disruption"
    )
    assert expected == text(notices_of_act(verdict(), result))


def test_eviction_failed() -> None:
    """
    Any other failure is told with the server's words and where to look.
    """
    expected = (
        f"GPUMemoryEvictionFailed: {HELD}, and the eviction failed: 403; it is tried again; "
        "run gpufence-agent check on the node, or delete the pod"
    )
    assert expected == text(notices_of_act(verdict(), ActResult(Answer.FAILED, detail="403")))


@pytest.mark.parametrize("answer", [Answer.GONE, Answer.REPLACED, Answer.CANCELLED])
def test_answers_that_are_no_news(answer: Answer) -> None:
    """
    A pod that has left by itself is not talked about.
    """
    assert () == notices_of_act(verdict(Outcome.EVICT), ActResult(answer))


def test_kill_is_no_eviction() -> None:
    """
    A kill is told as what it is: a pod that does not end.
    """
    found = verdict(Outcome.STUCK, action=Action.KILL)

    assert () == notices_of_act(found, ActResult(Answer.ACCEPTED))


def test_termination_stuck() -> None:
    """
    A pod that does not end is told what can end it.
    """
    expected = (
        f"GPUMemoryTerminationStuck: {HELD}; the pod is terminating and does not end, which the "
        "API cannot hurry; end its processes on the node, or enable last-resort-kill"
    )
    assert expected == text(sentences.termination_stuck(verdict(Outcome.STUCK)))


def test_container_exceeded() -> None:
    """
    A container over its part is told that nothing follows, and what to write.
    """
    found = verdict(Outcome.WITHIN, over=False)

    expected = (
        "GPUMemoryLimitExceeded: container aside holds 1200 MiB on card 0 (GPU-0), its part is "
        "1024 MiB, while the pod is within its limit of 3072 MiB; nothing is evicted for that; "
        "set gpufence.io/memory.aside to what it needs"
    )
    excess = ContainerExcess("aside", 1200 * MIB, GIB)
    assert expected == text(sentences.container_exceeded(found, excess))


def test_cap_ineffective() -> None:
    """
    A process above its cap is named with the cap and where its settings stand.
    """
    expected = (
        "GPUMemoryCapIneffective: process 7 of container main holds 4096 MiB on card 0 (GPU-0), "
        "its framework was told to stay within 2662 MiB with its context; its settings are ignored "
        "or overridden; see gpufence.io/plan for what was set, and gpufence.io/warnings for what "
        "defeats it"
    )
    found = Ineffective("main", 7, 4 * GIB, 2662 * MIB)
    assert expected == text(sentences.cap_ineffective(verdict(), found))


@pytest.mark.parametrize("why", ["", "no container asks for GPU memory in a way gpufence knows"])
def test_undeclared(why: str) -> None:
    """
    A pod without a limit is told why it has none and how to get one.
    """
    found = verdict(Outcome.UNDECLARED, pod=pod(undeclared=why), over=False)

    expected = (
        "GPUMemoryUndeclared: containers main, aside hold 4097 MiB on card 0 (GPU-0) by 2 "
        f"processes (PID 7, 8) without a limit: {why or 'no limit is known for this card'}; "
        "request an amount of GPU memory, or set gpufence.io/memory"
    )
    assert expected == text(sentences.undeclared(found))


def test_overcommitted() -> None:
    """
    A card with more limits than memory is told on the node.
    """
    found = sentences.overcommitted("n1", CardFinding(card(), 20 * GIB, overcommitted=True))

    expected = (
        "the limits of the pods on card 0 (GPU-0) add up to 20480 MiB, the card has 15360 MiB; "
        "nobody is evicted for that; let one scheduler alone place GPU pods on this node"
    )
    assert (names.OVERCOMMITTED, expected) == (found.reason, found.message)
    assert ("Node", "n1", "n1") == (
        found.regarding.kind,
        found.regarding.name,
        found.regarding.uid,
    )


def test_overcommitted_without_memory_info() -> None:
    """
    Where the card does not say how large it is, its description does.
    """
    silent = replace(card(), memory=None)
    found = sentences.overcommitted("n1", CardFinding(silent, 20 * GIB, overcommitted=True))

    assert "the card has 15360 MiB" in found.message


def test_unattributed() -> None:
    """
    Memory of no pod is told on the node with its processes.
    """
    whose = (process(5, GIB)._replace(pod_uid=""), process(7, GIB))
    found = sentences.unattributed(
        "n1", CardFinding(card(*whose), 0, overcommitted=False, unattributed_bytes=GIB)
    )

    expected = (
        "processes that belong to no pod of this node hold 1024 MiB on card 0 (GPU-0): PID 5; "
        "nobody is evicted for that; look at them with nvidia-smi and ps on the node, "
        "or run gpufence-agent check"
    )
    assert (names.UNATTRIBUTED, expected) == (found.reason, found.message)


def test_nvml_unavailable() -> None:
    """
    A node that cannot be measured is told since when, why, and that nobody pays for it.
    """
    found = sentences.nvml_unavailable("n1", "driver not loaded", 130)

    expected = (
        "GPU memory has not been measured for 2 min 10 s: driver not loaded; "
        "nobody is evicted meanwhile; see the agent's log and the driver on the node"
    )
    assert (names.NVML_UNAVAILABLE, expected) == (found.reason, found.message)
