"""
PURE. Everything that a tick, an act or a card that cannot be read gives cause to say.

Most ticks repeat the one before, and sentences cost more than the judging: they are made when what
they say changes, and otherwise often enough for the damping to see that it lasts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent.events import sentences
from agent.model.decision import Answer, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.events.episodes import Notice
    from agent.model.decision import ActResult, CardFinding, Decision, Verdict
    from agent.model.sample import Sample
    from agent.model.use import PodOnCard, UseKey

REPEAT_SECONDS: Final = 10.0
"""Far less than an episode of the damping lasts without cause."""

ALL_CARDS: Final = ""
UNIDENTIFIED: Final = "?"
UNFENCED: Final = "unfenced"


@dataclass(frozen=True, slots=True)
class Announced:
    """The causes of what was said last, when that was, and what pods missed of what they lent."""

    causes: frozenset[object] = frozenset()
    at: float | None = None
    missing: Mapping[UseKey, PodOnCard] = field(default_factory=dict)


NOTHING_ANNOUNCED = Announced()


def new_notices(
    before: Announced, decision: Decision, node: str
) -> tuple[Announced, tuple[Notice, ...]]:
    """Return what a decision gives cause to say that the one before did not, or not lately."""
    causes = _causes(decision)
    recent = before.at is not None and decision.at - before.at < REPEAT_SECONDS
    if recent and causes == before.causes:
        return before, ()
    missing = {(use.pod.uid, use.card.uuid): use for use in decision.missing}
    there = {item.pod.uid for item in decision.verdicts} - decision.lending
    back = [use for key, use in before.missing.items() if key not in missing and key[0] in there]
    said = (
        *(item for verdict in decision.verdicts for item in _of_verdict(verdict)),
        *(item for use in missing.values() for item in sentences.lent(use)),
        *_of_node(decision, node),
        *(item for use in back for item in sentences.returned(use)),
    )
    return Announced(causes, decision.at, missing), said


def notices_of_act(verdict: Verdict, result: ActResult) -> tuple[Notice, ...]:
    """
    Return what an act and the answer to it give cause to say.

    A pod that went by itself is not worth a word, nor is an act that the last look called off. A
    kill is said by the notice of the stuck pod.
    """
    if result.answer is Answer.BLOCKED:
        return sentences.eviction_blocked(verdict, result.detail)
    if result.answer is Answer.TOO_LARGE:
        return sentences.too_large_to_end(verdict)
    if result.answer is Answer.FAILED:
        return sentences.eviction_failed(verdict, result.detail)
    if result.answer is Answer.ACCEPTED and verdict.outcome is Outcome.EVICT:
        return sentences.evicted(verdict)
    return ()


def unreadable(
    before: Mapping[str, float], sample: Sample, now: float, node: str, patience_seconds: float
) -> tuple[dict[str, float], tuple[Notice, ...]]:
    """
    Return since when what cannot be read, by UUID or for all cards as one, and what to say of it.

    One trouble of all cards is said once, not once for each card.
    """
    if sample.trouble:
        reasons = {ALL_CARDS: sample.trouble.text}
    else:
        reasons = {
            item.card.uuid: item.trouble.text or "it does not say how much memory is used"
            for item in sample.cards
            if item.memory is None or item.processes is None
        }
        unfenced = sample.unfenced
        unknown = [item for item in sample.unidentified if item not in unfenced]
        more = {UNIDENTIFIED: unknown, UNFENCED: unfenced}
        reasons |= {key: "; ".join(map(str, items)) for key, items in more.items() if items}
    since = {uuid: before.get(uuid, now) for uuid in reasons}
    cards = {item.card.uuid: item.card for item in sample.cards}
    due = []
    for uuid, began in since.items():
        seconds = now - began
        if seconds < patience_seconds:
            continue
        if uuid in cards:
            due.append(sentences.card_unavailable(node, cards[uuid], reasons[uuid], seconds))
        elif uuid == ALL_CARDS:
            due.append(sentences.nvml_unavailable(node, reasons[uuid], seconds))
        elif uuid == UNFENCED:
            due.append(sentences.cards_unfenced(node, reasons[uuid]))
        else:
            due.append(sentences.cards_unidentified(node, reasons[uuid], seconds))
    return since, tuple(due)


def _causes(decision: Decision) -> frozenset[object]:
    """Name all causes, without the figures that change from look to look."""
    verdicts = (
        (
            item.pod.uid,
            item.uuid,
            item.outcome,
            item.over,
            tuple(excess.container for excess in item.containers_over),
            tuple(process.container for process in item.ineffective),
            item.told_larger_bytes,
        )
        for item in decision.verdicts
        if not _is_silent(item)
    )
    cards = (
        (
            uuid,
            finding.overcommitted,
            finding.unattributed_bytes is not None,
            _blamed(finding),
            finding.unjudged,
        )
        for uuid, finding in decision.findings.items()
    )
    suspended = (item.measure for item in decision.suspensions)
    missing = ((use.pod.uid, use.card.uuid) for use in decision.missing)
    return frozenset((*verdicts, *cards, *suspended, *missing))


def _blamed(finding: CardFinding) -> tuple[object, ...]:
    cause = None if finding.shortage is None else finding.shortage.cause
    return () if cause is None else ("" if cause.pod is None else cause.pod.uid, cause.hidden)


def _is_silent(verdict: Verdict) -> bool:
    """Return whether nothing is ever said of a verdict: most of them, most of the time."""
    harmless = verdict.outcome in {Outcome.WITHIN, Outcome.IDLE, Outcome.BORROWING}
    more = verdict.containers_over or verdict.ineffective or verdict.told_larger_bytes
    return harmless and not more


def _of_verdict(verdict: Verdict) -> Iterator[Notice]:
    if verdict.outcome is Outcome.UNDECLARED:
        yield from sentences.undeclared(verdict)
    if verdict.over or verdict.recalled:
        yield from _of_excess(verdict)
    else:
        for excess in verdict.containers_over:
            yield from sentences.container_exceeded(verdict, excess)
    for process in verdict.ineffective:
        yield from sentences.cap_ineffective(verdict, process)
    if verdict.told_larger_bytes is not None:
        yield from sentences.cap_too_low(verdict, verdict.told_larger_bytes)


def _of_excess(verdict: Verdict) -> tuple[Notice, ...]:
    """Return the one thing to say of a pod that holds too much, the most that can be said."""
    if verdict.outcome is Outcome.WOULD_EVICT:
        return sentences.would_evict(verdict)
    if verdict.outcome is Outcome.STUCK:
        return sentences.termination_stuck(verdict)
    return sentences.limit_exceeded(verdict) if verdict.over else sentences.recalled(verdict)


def _of_node(decision: Decision, node: str) -> Iterator[Notice]:
    for finding in decision.findings.values():
        if finding.overcommitted:
            yield sentences.overcommitted(node, finding)
        if finding.unattributed_bytes is not None:
            yield sentences.unattributed(node, finding)
        if finding.unjudged:
            yield sentences.unjudged(node, finding.card.card, finding.unjudged_seconds)
        shortage = finding.shortage
        if shortage is not None and shortage.cause is not None:
            yield sentences.short(node, finding.card.card, shortage.missing_bytes, shortage.cause)
    for suspension in decision.suspensions:
        yield sentences.eviction_suspended(node, *suspension)
