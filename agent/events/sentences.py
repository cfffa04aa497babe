"""
PURE. Every sentence of the agent, each made by a function with a name, and asserted once.

The first says how much of what is held where, the next what follows; then come the value that would
do and the command that explains the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.events.episodes import Notice, about_node, one_line, pod_notices
from agent.model.decision import Outcome
from gpufence import names
from gpufence.event_text import (
    MOST_TEXT,
    Anchor,
    event_text,
    explain_command,
    named_card,
    shortened,
    would_do,
)
from gpufence.mode import Mode
from gpufence.target import enough_for
from gpufence.text import limit_mebibytes, listed, mebibytes, minutes

if TYPE_CHECKING:
    from agent.model.decision import Blame, CardFinding, ContainerExcess, Ineffective, Verdict
    from agent.model.use import PodOnCard
    from gpufence.cards import Card

MOST_PIDS: Final = 4
MOST_QUOTED: Final = 90
_MOST_PLACE: Final = 40
_ASK: Final = (
    f"It asks for no GPU ({names.UNDECLARED_USE}): request an amount, or set "
    "NVIDIA_VISIBLE_DEVICES=void."
)
_BORROWS: Final = "Only its request is reserved: raise that, or let it give back what it caches."
_DECLARE: Final = f"Request an amount of GPU memory, or set {names.MEMORY}."


def limit_exceeded(verdict: Verdict) -> tuple[Notice, ...]:
    first = f"Over its GPU memory limit: {_use_of(verdict)}."
    return _on_pod(names.LIMIT_EXCEEDED, verdict, first, _what_follows(verdict), _remedy(verdict))


def container_exceeded(verdict: Verdict, excess: ContainerExcess) -> tuple[Notice, ...]:
    first = (
        f"Container {shortened(excess.container)} is over its part of the GPU memory limit: "
        f"{_of(excess.used_bytes, excess.part_bytes)} on {_where(verdict)}."
    )
    more = (
        "Nothing is evicted for that: the pod is within its limit.",
        f"Set {names.MEMORY_OF_CONTAINER}CONTAINER to what it needs.",
    )
    return _on_pod(names.LIMIT_EXCEEDED, verdict, first, *more, topic=excess.container)


def would_evict(verdict: Verdict) -> tuple[Notice, ...]:
    first = f"Mode evict would evict it: {_use_of(verdict)}."
    stays = f"Mode {verdict.pod.mode}: nothing happens."
    return _on_pod(names.WOULD_EVICT, verdict, first, _remedy(verdict), stays)


def recalled(verdict: Verdict) -> tuple[Notice, ...]:
    first = f"Asked to give GPU memory back: {_use_of(verdict)}."
    follows = "Other pods need what it borrows."
    if verdict.pod.mode is not Mode.EVICT:
        follows += f" Mode {verdict.pod.mode}: nothing happens."
    elif verdict.due_seconds:
        follows += f" It is evicted if it keeps that for {minutes(verdict.due_seconds)} more."
    return _on_pod(names.RECALLED, verdict, first, follows, _remedy(verdict))


def lent(use: PodOnCard) -> tuple[Notice, ...]:
    first = (
        f"Of {mebibytes(use.owed_bytes)} reserved for it and not used on {named_card(use.card)}, "
        "other pods borrow some, and are asked for that."
    )
    return _of_lender(use, first, "They give it back, or are evicted.")


def returned(use: PodOnCard) -> tuple[Notice, ...]:
    first = f"What is reserved for it on {named_card(use.card)} is free again."
    return _of_lender(use, first, topic="back")


def evicted(verdict: Verdict) -> tuple[Notice, ...]:
    over = "" if _by_loan(verdict) else f", for {minutes(verdict.over_seconds)}"
    first = f"Evicted: {_use_of(verdict)}{over}."
    short = "The card was short of memory." if verdict.by_shortage else ""
    if _by_loan(verdict):
        short = "Other pods needed what it borrowed."
    return _on_pod(names.EVICTED, verdict, first, _remedy(verdict), short, owner_too=True)


def eviction_blocked(verdict: Verdict, detail: str) -> tuple[Notice, ...]:
    first = f"Eviction refused, and asked for again: {_use_of(verdict)}."
    more = (
        "Let exactly one PodDisruptionBudget match it, and allow a disruption.",
        f"API server: {_clipped(detail)}.",
    )
    return _on_pod(names.EVICTION_BLOCKED, verdict, first, *more)


def eviction_failed(verdict: Verdict, detail: str) -> tuple[Notice, ...]:
    first = f"Eviction failed, and tried again: {_use_of(verdict)}."
    more = "Run gpufence-agent check on the node, or delete the pod.", f"Why: {_clipped(detail)}."
    return _on_pod(names.EVICTION_FAILED, verdict, first, *more)


def too_large_to_end(verdict: Verdict) -> tuple[Notice, ...]:
    first = f"Too large an object for etcd to be evicted or deleted: {_use_of(verdict)}."
    remedy = "Take labels off it, end its processes on the node, or enable last-resort-kill."
    return _on_pod(names.TERMINATION_STUCK, verdict, first, remedy)


def termination_stuck(verdict: Verdict) -> tuple[Notice, ...]:
    if not verdict.pod.terminating and verdict.use is not None and verdict.use.refusals.too_large:
        return too_large_to_end(verdict)
    first = f"Deleted, and does not end: {_use_of(verdict)}."
    remedy = "End its processes on the node, or enable last-resort-kill."
    return _on_pod(names.TERMINATION_STUCK, verdict, first, remedy)


def cap_ineffective(verdict: Verdict, process: Ineffective) -> tuple[Notice, ...]:
    first = (
        f"Process {process.pid} of container {shortened(process.container)} holds "
        f"{mebibytes(process.used_bytes)} on {_where(verdict)}, its settings allow "
        f"{limit_mebibytes(process.allowed_bytes)} with CUDA's own."
    )
    why = f"The program ignores or overrides them: see {names.WARNINGS}."
    return _on_pod(names.CAP_INEFFECTIVE, verdict, first, why, topic=process.container)


def cap_too_low(verdict: Verdict, told_bytes: int) -> tuple[Notice, ...]:
    first = (
        f"Gets less than its limit of {limit_mebibytes(verdict.limit_bytes)}: its fractions are "
        f"for a card of {mebibytes(told_bytes)}, not for {_where(verdict)}."
    )
    remedy = "Delete the pod: the next one gets its whole share."
    return _on_pod(names.CAP_TOO_LOW, verdict, first, remedy, anchor=Anchor.CAPPED)


def undeclared(verdict: Verdict) -> tuple[Notice, ...]:
    used = None if verdict.use is None else verdict.use.used_bytes
    why = verdict.pod.undeclared or "no limit is known for this card"
    first = f"Holds {mebibytes(used)} without a limit on {_where(verdict)}{_by(verdict)}."
    return _on_pod(names.UNDECLARED, verdict, first, _DECLARE, f"Why: {_clipped(why)}.")


def overcommitted(node: str, finding: CardFinding) -> Notice:
    card, memory = finding.card.card, finding.card.memory
    total = card.memory_bytes if memory is None else memory.total_bytes
    first = (
        f"The limits of the pods on {named_card(card)} add up to "
        f"{mebibytes(finding.committed_bytes)}, the card has {limit_mebibytes(total)}."
    )
    remedy = "No pod is evicted for that. Let one scheduler alone place GPU pods on this node."
    return _on_node(names.OVERCOMMITTED, node, first, last=remedy, topic=card.uuid)


def unattributed(node: str, finding: CardFinding) -> Notice:
    card = finding.card.card
    pids = [str(item.pid) for item in finding.card.processes if not item.pod_uid]
    shown = listed(pids, MOST_PIDS)
    first = (
        "Processes of no pod of this node hold "
        f"{mebibytes(finding.unattributed_bytes)} on {named_card(card)}: PID {shown}."
    )
    left = [
        f"{mebibytes(item.used_bytes)} by PID {item.pid}, of pod "
        f"{shortened(owner.namespace, _MOST_PLACE)}/{shortened(owner.name)}, which has ended."
        for item, owner in finding.card.left
    ]
    remedy = "No pod is evicted for that. Look with nvidia-smi and ps, or gpufence-agent check."
    return _on_node(names.UNATTRIBUTED, node, first, *left, last=remedy, topic=card.uuid)


def nvml_unavailable(node: str, trouble: str, stale_seconds: float) -> Notice:
    first = f"GPU memory has not been measured for {minutes(stale_seconds)}: {_clipped(trouble)}."
    remedy = "No pod is evicted meanwhile. See the agent's log and the driver on the node."
    return _on_node(names.NVML_UNAVAILABLE, node, first, last=remedy)


def card_unavailable(node: str, card: Card, trouble: str, stale_seconds: float) -> Notice:
    first = (
        f"Memory of {named_card(card)} has not been measured for {minutes(stale_seconds)}: "
        f"{_clipped(trouble)}."
    )
    remedy = "No pod on it is evicted meanwhile. See nvidia-smi on the node."
    return _on_node(names.NVML_UNAVAILABLE, node, first, last=remedy, topic=card.uuid)


def unjudged(node: str, card: Card, seconds: float) -> Notice:
    first = (
        f"For {minutes(seconds)} the processes of {named_card(card)} are listed too seldom for "
        "time over a limit to count: evictions on it come later."
    )
    metric = "gpufence_card_last_list_timestamp_seconds"
    remedy = f"See {metric}, and whether the driver or the node is overloaded."
    topic = f"{card.uuid}/unjudged"
    return _on_node(names.NVML_UNAVAILABLE, node, first, last=remedy, topic=topic)


def cards_unidentified(node: str, trouble: str, stale_seconds: float) -> Notice:
    first = f"Cards have not been identified for {minutes(stale_seconds)}: {_clipped(trouble)}."
    remedy = "Pods on them are neither measured nor evicted. See nvidia-smi on the node."
    return _on_node(names.NVML_UNAVAILABLE, node, first, last=remedy, topic="unidentified")


def cards_unfenced(node: str, trouble: str) -> Notice:
    return _on_node(names.UNFENCED, node, trouble)


def short(node: str, card: Card, missing_bytes: int, cause: Blame) -> Notice:
    first = (
        f"{mebibytes(missing_bytes)} are missing on {named_card(card)} of what its pods may still "
        "need, and no eviction gives enough back."
    )
    return _on_node(names.SHORT, node, first, last=_blame(cause), topic=card.uuid)


def eviction_suspended(node: str, measure: str, violating: int, holding: int) -> Notice:
    unit = shortened(measure, _MOST_PLACE) or "an unknown unit"
    first = (
        f"Evictions of pods measured in {unit} are suspended but under memory pressure: "
        f"{violating} of {holding} are over their limits at once."
    )
    remedy = (
        "Probably a wrong unit or limit: compare the pods' "
        f"{names.SUMMARY} with what they requested."
    )
    return _on_node(names.EVICTION_SUSPENDED, node, first, last=remedy, topic=measure)


def _blame(cause: Blame) -> str:
    held, pod = mebibytes(cause.held_bytes), cause.pod
    if pod is not None:
        where = shortened(pod.namespace, _MOST_PLACE)
        who = f"Pod {shortened(pod.name, _MOST_PLACE)} of namespace {where} holds {held}"
        if pod.terminating:
            return f"{who} and is terminating: end its processes on the node."
        if pod.mode is None:
            return f"{who} in a namespace without {names.MODE}: label it, or move the pod."
        if not pod.limits or not pod.enforced:
            return f"{who} without a limit that is enforced: give it one, or move the pod."
        why = _clipped(pod.exempt) or f"in mode {pod.mode} it stays"
        return f"{who} above its {cause.above}, and {why}: move it, or raise the mode."
    who = "No process that the driver shows holds" if cause.hidden else "Processes of no pod hold"
    return f"{who} {held}: look with nvidia-smi and ps on the node."


def _what_follows(verdict: Verdict) -> str:
    """Return what a person may expect, by the reason that keeps the pod where it is."""
    lasting = {
        Outcome.TOLERATED: "It stays: that is within the margin for eviction.",
        Outcome.EXEMPT: f"It is never evicted: {_clipped(verdict.pod.exempt)}.",
        Outcome.NOT_ENFORCED: "It stays: its limit is implied and not enforced.",
        Outcome.MPS: "It stays: it shares the node's MPS server with others (GPUFENCE_MPS).",
        Outcome.ONLY_WHEN_SHORT: "It is evicted only under memory pressure.",
        Outcome.UNINJECTED: ("The webhook never saw it: it is evicted only under memory pressure."),
        Outcome.OTHER_CARD: (
            "Its fraction is for a smaller card: delete it, or it is evicted under memory pressure."
        ),
        Outcome.TERMINATING: "It is terminating already.",
    }
    if verdict.outcome in lasting:
        return lasting[verdict.outcome]
    if verdict.pod.mode is not Mode.EVICT:
        return f"Mode {verdict.pod.mode}: nothing happens."
    if not verdict.due_seconds:
        return "It is evicted if this goes on."
    return f"It is evicted if this lasts {minutes(verdict.due_seconds)} more."


def _remedy(verdict: Verdict) -> str:
    """Return the value that would do for what the pod holds, the same as `explain` has it."""
    use = verdict.use
    if verdict.pod.unasked:
        return _ASK
    if _by_loan(verdict):
        return _BORROWS
    if use is None or not use.certain_bytes:
        return _DECLARE
    reserves = [cap.reserve_bytes for cap in verdict.pod.caps.values() if cap.reserve_bytes]
    enough = enough_for(use.certain_bytes, len(use.processes), reserves)
    return would_do(enough, use.card.memory_bytes)


def _on_pod(
    reason: str,
    verdict: Verdict,
    first: str,
    *more: str,
    topic: str = "",
    anchor: Anchor = Anchor.EVICTED,
    owner_too: bool = False,
) -> tuple[Notice, ...]:
    text = event_text(first, *more, last=explain_command(verdict.pod.name))
    topic = f"{verdict.uuid}/{topic}"
    return pod_notices(reason, verdict.pod, text, topic=topic, anchor=anchor, owner_too=owner_too)


def _of_lender(use: PodOnCard, first: str, *more: str, topic: str = "") -> tuple[Notice, ...]:
    text = event_text(first, *more, last=explain_command(use.pod.name))
    return pod_notices(names.LENT, use.pod, text, topic=f"{use.card.uuid}/{topic}", anchor=None)


def _by_loan(verdict: Verdict) -> bool:
    """Return whether a pod is within its limit, and all there is against it is what it borrows."""
    return verdict.recalled and not verdict.over


def _on_node(
    reason: str, node: str, first: str, *more: str, last: str = "", topic: str = ""
) -> Notice:
    text = one_line(event_text(first, *more, last=last, most=MOST_TEXT))
    return Notice(reason, about_node(node), text, topic)


def _use_of(verdict: Verdict) -> str:
    use = verdict.use
    counted = None if use is None else use.counted_bytes
    least = "at least " if use is not None and use.used_bytes is None else ""
    if use is not None and _by_loan(verdict):
        loan = f"{mebibytes(counted)}, {mebibytes(use.borrowed_bytes)} above its request"
        return f"{least}{loan}, on {_where(verdict)}{_by(verdict)}"
    return f"{least}{_of(counted, verdict.limit_bytes)} on {_where(verdict)}{_by(verdict)}"


def _of(used: int | None, limit: int | None) -> str:
    return f"{mebibytes(used, unit='')} of {limit_mebibytes(limit)}"


def _where(verdict: Verdict) -> str:
    return "an unknown card" if verdict.use is None else named_card(verdict.use.card)


def _by(verdict: Verdict) -> str:
    """Name the largest container and process, and count the others."""
    use = verdict.use
    if use is None or not use.processes:
        return ""
    used = use.containers or {}
    containers = sorted(filter(None, used), key=lambda name: (-used[name], name))
    processes = sorted(use.processes, key=lambda item: (-(item.used_bytes or 0), item.pid))
    names_shown = listed([shortened(name) for name in containers], most=1)
    container = f"container {names_shown}, " if containers else ""
    return f" by {container}PID {processes[0].pid}"


def _clipped(text: str) -> str:
    """Shorten what others have written, so that the remedy after it still fits."""
    short = text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}.."
    return short.removesuffix(".")
