"""
PURE. Every sentence of the agent, each made by a function with a name, and asserted once.

Each says who holds how much where, what the limit is, since when, by how many processes, and what
to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent.events.episodes import Notice, about_node, about_pod, one_line
from agent.model.decision import Outcome
from gpufence import names
from gpufence.mode import Mode
from gpufence.text import limit_mebibytes, mebibytes, minutes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.model.decision import Blame, CardFinding, ContainerExcess, Ineffective, Verdict
    from gpufence.cards import Card

MOST_NAMED: Final = 4
MOST_QUOTED: Final = 240
_ASK = (
    f"it asks for no GPU, and its namespace says {names.UNDECLARED_USE}: evict; request an amount "
    "of GPU memory, or keep it off the card with NVIDIA_VISIBLE_DEVICES=void"
)
_LESS_OR_MORE = f"let the framework use less, or raise {names.MEMORY} or the requested amount"


def limit_exceeded(verdict: Verdict) -> tuple[Notice, ...]:
    return _on_pod(
        names.LIMIT_EXCEEDED,
        verdict,
        f"{_use_of(verdict)}; {_what_follows(verdict)}; {_remedy(verdict)}",
    )


def _remedy(verdict: Verdict) -> str:
    return _ASK if verdict.pod.unasked else _LESS_OR_MORE


def container_exceeded(verdict: Verdict, excess: ContainerExcess) -> tuple[Notice, ...]:
    message = (
        f"container {excess.container} holds {mebibytes(excess.used_bytes)} on {_where(verdict)}, "
        f"its part is {limit_mebibytes(excess.part_bytes)}, while the pod is within its limit of "
        f"{limit_mebibytes(verdict.limit_bytes)}; nothing is evicted for that; "
        f"set {names.MEMORY_OF_CONTAINER}{excess.container} to what it needs"
    )
    return _on_pod(names.LIMIT_EXCEEDED, verdict, message, topic=excess.container)


def would_evict(verdict: Verdict) -> tuple[Notice, ...]:
    mode = verdict.pod.mode
    return _on_pod(
        names.WOULD_EVICT,
        verdict,
        f"{_use_of(verdict)}; in mode evict the pod would be evicted now, in mode {mode} it stays; "
        f"{_remedy(verdict)} before the namespace's {names.MODE} is raised",
    )


def evicted(verdict: Verdict) -> tuple[Notice, ...]:
    why = " and the card is under memory pressure" if verdict.by_shortage else ""
    return _on_pod(
        names.EVICTED,
        verdict,
        f"evicted: {_use_of(verdict)}{why}; {_remedy(verdict)}",
    )


def eviction_blocked(verdict: Verdict, detail: str) -> tuple[Notice, ...]:
    return _on_pod(
        names.EVICTION_BLOCKED,
        verdict,
        f"{_use_of(verdict)}, and the API server refuses the eviction: "
        f"{_clipped(detail)}; it is asked again; "
        "let exactly one PodDisruptionBudget match the pod and allow a disruption",
    )


def eviction_failed(verdict: Verdict, detail: str) -> tuple[Notice, ...]:
    return _on_pod(
        names.EVICTION_FAILED,
        verdict,
        f"{_use_of(verdict)}, and the eviction failed: {_clipped(detail)}; it is tried again; "
        "run gpufence-agent check on the node, or delete the pod",
    )


def too_large_to_end(verdict: Verdict) -> tuple[Notice, ...]:
    return _on_pod(
        names.TERMINATION_STUCK,
        verdict,
        f"{_use_of(verdict)}; the pod fills all that etcd takes of one object, so that the API can "
        "neither evict nor delete it; take labels off it, end its processes on the node, or enable "
        "last-resort-kill",
    )


def termination_stuck(verdict: Verdict) -> tuple[Notice, ...]:
    if not verdict.pod.terminating and verdict.use is not None and verdict.use.refusals.too_large:
        return too_large_to_end(verdict)
    return _on_pod(
        names.TERMINATION_STUCK,
        verdict,
        f"{_use_of(verdict)}; the pod is terminating and does not end, which the API cannot hurry; "
        "end its processes on the node, or enable last-resort-kill",
    )


def cap_ineffective(verdict: Verdict, process: Ineffective) -> tuple[Notice, ...]:
    message = (
        f"process {process.pid} of container {process.container} holds "
        f"{mebibytes(process.used_bytes)} on {_where(verdict)}, its framework is configured "
        f"to stay within {limit_mebibytes(process.allowed_bytes)} with its context; "
        f"its settings are ignored or overridden; see {names.PLAN} for what was set, "
        f"and {names.WARNINGS} for what defeats it"
    )
    return _on_pod(names.CAP_INEFFECTIVE, verdict, message, topic=process.container)


def cap_too_low(verdict: Verdict, told_bytes: int) -> tuple[Notice, ...]:
    return _on_pod(
        names.CAP_TOO_LOW,
        verdict,
        f"its fractions are for a card of {mebibytes(told_bytes)}, since the size of "
        f"{_where(verdict)} was unknown when the pod was bound: its frameworks take less than "
        f"its limit of {limit_mebibytes(verdict.limit_bytes)} allows; delete the pod, "
        "and the next one gets its whole share",
    )


def undeclared(verdict: Verdict) -> tuple[Notice, ...]:
    used = None if verdict.use is None else verdict.use.used_bytes
    why = verdict.pod.undeclared or "no limit is known for this card"
    return _on_pod(
        names.UNDECLARED,
        verdict,
        f"{_holds(verdict)} {mebibytes(used)} on {_where(verdict)} by {_processes(verdict)} "
        f"without a limit: {_clipped(why)}; request an amount of GPU memory, or set {names.MEMORY}",
    )


def overcommitted(node: str, finding: CardFinding) -> Notice:
    card, memory = finding.card.card, finding.card.memory
    total = card.memory_bytes if memory is None else memory.total_bytes
    message = (
        f"the limits of the pods on {_card(card)} add up to "
        f"{mebibytes(finding.committed_bytes)}, the card has {limit_mebibytes(total)}; no pod is "
        "evicted for that; let one scheduler alone place GPU pods on this node"
    )
    return _on_node(names.OVERCOMMITTED, node, message, topic=card.uuid)


def unattributed(node: str, finding: CardFinding) -> Notice:
    card = finding.card.card
    pids = [str(item.pid) for item in finding.card.processes if not item.pod_uid]
    message = (
        "processes that belong to no pod of this node hold "
        f"{mebibytes(finding.unattributed_bytes)} on {_card(card)}: PID {_listed(pids)}; "
        "no pod is evicted for that; look at them with nvidia-smi and ps on the node, "
        "or run gpufence-agent check"
    )
    return _on_node(names.UNATTRIBUTED, node, message, topic=card.uuid)


def nvml_unavailable(node: str, trouble: str, stale_seconds: float) -> Notice:
    return _on_node(
        names.NVML_UNAVAILABLE,
        node,
        f"GPU memory has not been measured for {minutes(stale_seconds)}: {_clipped(trouble)}; "
        "no pod is evicted meanwhile; see the agent's log and the driver on the node",
    )


def card_unavailable(node: str, card: Card, trouble: str, stale_seconds: float) -> Notice:
    return _on_node(
        names.NVML_UNAVAILABLE,
        node,
        f"memory of {_card(card)} has not been measured for {minutes(stale_seconds)}: "
        f"{_clipped(trouble)}; no pod on it is evicted meanwhile; see nvidia-smi on the node",
        topic=card.uuid,
    )


def unjudged(node: str, card: Card, seconds: float) -> Notice:
    return _on_node(
        names.NVML_UNAVAILABLE,
        node,
        f"the processes of {_card(card)} are listed too seldom: for {minutes(seconds)} no time "
        "of pods over their limits has counted on it, and evictions come later for it; see "
        "gpufence_card_list_age_seconds, and whether the driver or the node is overloaded",
        topic=f"{card.uuid}/unjudged",
    )


def cards_unidentified(node: str, trouble: str, stale_seconds: float) -> Notice:
    return _on_node(
        names.NVML_UNAVAILABLE,
        node,
        f"cards of this node have not been identified for {minutes(stale_seconds)}: "
        f"{_clipped(trouble)}; pods on them are neither measured nor evicted; "
        "see nvidia-smi on the node",
        topic="unidentified",
    )


def cards_unfenced(node: str, trouble: str) -> Notice:
    return _on_node(names.UNFENCED, node, _clipped(trouble))


def short(node: str, card: Card, missing_bytes: int, cause: Blame) -> Notice:
    message = (
        f"{_card(card)} lacks {mebibytes(missing_bytes)} of what its pods may still "
        f"need, and no eviction gives enough back: {_blame(cause)}"
    )
    return _on_node(names.SHORT, node, message, topic=card.uuid)


def eviction_suspended(node: str, measure: str, violating: int, holding: int) -> Notice:
    return _on_node(
        names.EVICTION_SUSPENDED,
        node,
        f"evictions of pods measured in {_clipped(measure) or 'an unknown unit'} are suspended, "
        "except under memory pressure: more than half of them are over their limits at once "
        f"({violating} of {holding}); probably a wrong unit or limit: compare "
        f"the pods' {names.SUMMARY} with what they requested",
        topic=measure,
    )


def _blame(cause: Blame) -> str:
    held, pod = mebibytes(cause.held_bytes), cause.pod
    if pod is not None:
        who = f"pod {pod.name} of namespace {pod.namespace} holds {held}"
        if pod.terminating:
            return f"{who} and is terminating; end its processes on the node"
        if pod.mode is None:
            return f"{who} in a namespace without {names.MODE}; label it, or move the pod"
        if not pod.limits or not pod.enforced:
            return f"{who} without a limit that is enforced; give it one, or move the pod"
        why = _clipped(pod.exempt) or f"in mode {pod.mode} it stays"
        return f"{who} above its limit, and {why}; move it, or raise the mode"
    who = "no process that the driver shows holds" if cause.hidden else "processes of no pod hold"
    return f"{who} {held}; look with nvidia-smi and ps on the node"


def _use_of(verdict: Verdict) -> str:
    use = verdict.use
    counted = None if use is None else use.counted_bytes
    least = "at least " if use is not None and use.used_bytes is None else ""
    return (
        f"{_holds(verdict)} {least}{mebibytes(counted)} on {_where(verdict)}, "
        f"the pod's limit is {limit_mebibytes(verdict.limit_bytes)}, "
        f"over for {minutes(verdict.over_seconds)} by {_processes(verdict)}"
    )


def _what_follows(verdict: Verdict) -> str:
    """Return what a person may expect, by the reason that keeps the pod where it is."""
    lasting = {
        Outcome.TOLERATED: "within the margin for eviction, so it stays",
        Outcome.EXEMPT: f"it is never evicted: {_clipped(verdict.pod.exempt)}",
        Outcome.NOT_ENFORCED: "its limit is implied and not enforced, so it stays",
        Outcome.MPS: "it shares the node's MPS server with others, so it stays (GPUFENCE_MPS)",
        Outcome.ONLY_WHEN_SHORT: "it is evicted only under memory pressure",
        Outcome.UNINJECTED: (
            "the webhook never saw it, so it is evicted only under memory pressure"
        ),
        Outcome.OTHER_CARD: "its fraction was computed for a smaller card, so it is evicted only "
        "under memory pressure; delete it, and the next pod gets one for "
        "this card",
        Outcome.TERMINATING: "it is terminating already",
    }
    if verdict.outcome in lasting:
        return lasting[verdict.outcome]
    if verdict.pod.mode is not Mode.EVICT:
        return f"mode {verdict.pod.mode}: it stays"
    return "it is evicted if this goes on"


def _on_pod(reason: str, verdict: Verdict, message: str, *, topic: str = "") -> tuple[Notice, ...]:
    """Tell the pod and its controller; to the latter the pod is named, since it has many."""
    pod = verdict.pod
    itself, *owners = about_pod(pod)
    key = f"{verdict.uuid}/{topic}"
    return (
        Notice(reason, itself, one_line(message), key),
        *(
            Notice(reason, owner, one_line(f"pod {pod.name}: {message}"), f"{pod.uid}/{key}")
            for owner in owners
        ),
    )


def _on_node(reason: str, node: str, message: str, *, topic: str = "") -> Notice:
    return Notice(reason, about_node(node), one_line(message), topic)


def _listed(names: Sequence[str]) -> str:
    """Name a few and count the rest."""
    shown = ", ".join(names[:MOST_NAMED])
    rest = len(names) - MOST_NAMED
    return f"{shown} and {rest} more" if rest > 0 else shown


def _clipped(text: str) -> str:
    """Shorten what others have written, so that the remedy after it still fits."""
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def _card(card: Card) -> str:
    return f"card {card.index} ({card.uuid})"


def _where(verdict: Verdict) -> str:
    return "an unknown card" if verdict.use is None else _card(verdict.use.card)


def _holds(verdict: Verdict) -> str:
    """Begin a sentence with the containers that hold memory, the largest first."""
    used = {} if verdict.use is None else verdict.use.containers or {}
    names = sorted(filter(None, used), key=lambda name: (-used[name], name))
    if not names:
        return "the pod holds"
    if len(names) == 1:
        return f"container {names[0]} holds"
    return f"containers {_listed(names)} hold"


def _processes(verdict: Verdict) -> str:
    """Count the processes and name the largest by PID."""
    processes = () if verdict.use is None else verdict.use.processes
    by_size = sorted(processes, key=lambda item: (-(item.used_bytes or 0), item.pid))
    pids = _listed([str(item.pid) for item in by_size])
    return f"{len(processes)} process{'' if len(processes) == 1 else 'es'} (PID {pids})"
