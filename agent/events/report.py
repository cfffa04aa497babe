"""
PURE. Everything worth saying about one tick, and about what became of an act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.events import sentences
from agent.model.decision import Answer, Brake, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.events.notice import Notice
    from agent.model.decision import ActResult, Decision, Verdict


def notices(decision: Decision, node: str) -> tuple[Notice, ...]:
    """
    Return what a decision gives cause to say; `episodes` sees to it that it is not said each tick.
    """
    return (
        *(item for verdict in decision.verdicts for item in _of_verdict(verdict)),
        *_of_node(decision, node),
    )


def notices_of(verdict: Verdict, result: ActResult) -> tuple[Notice, ...]:
    """
    Return what an act and the answer to it give cause to say.

    A pod that went by itself is no news, nor is an act that the last look called off. A kill is
    said by the notice of the stuck pod.
    """
    if result.answer is Answer.BLOCKED:
        return sentences.eviction_blocked(verdict, result.detail)
    if result.answer is Answer.FAILED:
        return sentences.eviction_failed(verdict, result.detail)
    if result.answer is Answer.ACCEPTED and verdict.outcome is Outcome.EVICT:
        return sentences.evicted(verdict)
    return ()


def _of_verdict(verdict: Verdict) -> Iterator[Notice]:
    if verdict.outcome is Outcome.UNDECLARED:
        yield from sentences.undeclared(verdict)
    if verdict.over:
        yield from _of_violation(verdict)
    else:
        for excess in verdict.containers_over:
            yield from sentences.container_exceeded(verdict, excess)
    for found in verdict.ineffective:
        yield from sentences.cap_ineffective(verdict, found)


def _of_violation(verdict: Verdict) -> Iterator[Notice]:
    yield from sentences.limit_exceeded(verdict)
    if verdict.outcome is Outcome.WOULD_EVICT:
        yield from sentences.would_evict(verdict)
    if verdict.outcome is Outcome.STUCK:
        yield from sentences.termination_stuck(verdict)


def _of_node(decision: Decision, node: str) -> Iterator[Notice]:
    for found in decision.findings.values():
        if found.overcommitted:
            yield sentences.overcommitted(node, found)
        if found.unattributed_bytes is not None:
            yield sentences.unattributed(node, found)
    if decision.brake is Brake.SUSPENDED:
        over = {item.pod.uid for item in decision.verdicts if item.over}
        holders = {item.pod.uid for item in decision.verdicts if item.limit_bytes is not None}
        yield sentences.eviction_suspended(node, decision.brake, len(over), len(holders))
