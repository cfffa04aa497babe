"""
PURE. The whole story of one pod in chapters: declared, injected, measured, and what follows.

Everything about the injection comes from the plan on the pod, which holds all figures; the
webhook's own code is not needed, and another version of it may have written them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.devices import called, first_names
from gpufence.dialects import declares
from gpufence.errors import shown
from gpufence.held import UNASKED
from gpufence.pods import EXTENDED
from gpufence.text import duration, listed
from kubectl_gpufence.cluster_view import card_of, is_stale
from kubectl_gpufence.endings import stumbling
from kubectl_gpufence.said import said_sentences
from kubectl_gpufence.verbs.explain.injected import injected
from kubectl_gpufence.verbs.explain.loans import any_borrows, loan_sentences
from kubectl_gpufence.verbs.explain.record import to_do, what_will_be
from kubectl_gpufence.verdicts import activity_sentence, fence_sentence, verdict
from kubectl_gpufence.view import (
    UNKNOWN,
    WIDTH,
    Bar,
    allowed,
    chapter,
    coloured,
    held,
    readable,
    width_of,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.devices import Device
    from gpufence.pods import Pod
    from gpufence.snapshot import PodRow, Snapshot, UseRow
    from kubectl_gpufence.verbs.explain.record import PodRecord
    from kubectl_gpufence.view import Display


def explanation(record: PodRecord, display: Display, *, sums: bool = False) -> list[str]:
    """
    Explain a pod in chapters, without those that are empty: what happens to it first, then where
    its figures come from, with all `sums` where somebody asks for them.
    """
    chapters = {
        "MEASURED": _measured(record, display),
        "ENDED": _bullets((ending.sentence for ending in record.pod.endings), display),
        "EVENTS": _bullets((event.sentence for event in record.events), display),
        "WHAT FOLLOWS": _bullets(what_will_be(record), display),
        "WHAT TO DO": _bullets(to_do(record), display),
        "DECLARED": _indented(_declared(record), display),
        "WARNINGS": _bullets(record.warnings, display),
        "INJECTED": injected(record, display, sums=sums),
    }
    lines = list(_head(record, display))
    for title, content in chapters.items():
        if body := list(content):
            lines += chapter(title, body, display)
    return lines


def _head(record: PodRecord, display: Display) -> Iterator[str]:
    pod = record.pod
    where = f"on node {pod.node}" if pod.node else "not placed yet"
    phase = "terminating" if pod.terminating else pod.phase or "of unknown phase"
    mode = {None: "namespace unknown", "": "namespace not fenced"}.get(
        record.mode, f"namespace in mode {record.mode}"
    )
    owner = f", owned by {pod.owner}" if pod.owner else ""
    title = f"pod {pod.namespace}/{pod.name}: {phase}, {where}, {mode}{owner}"
    yield from wrapped(title, "  ", display, first="")
    if summary := pod.annotations.get(names.SUMMARY):
        yield from wrapped(summary, "  ", display)


def _declared(record: PodRecord) -> Iterator[str]:
    """List every place where something is declared, then the limit that makes."""
    for container in record.pod.pod.containers:
        requests = [f"{value} {key}" for key, value in sorted(container.gpu.items())]
        if requests:
            yield f"{container.kind} {container.name} asks for {', '.join(requests)}"
    yield from _claims(record.pod.pod)
    for key, value in sorted(record.pod.annotations.items()):
        ours = key in names.USER_KEYS or key.startswith(names.MEMORY_OF_CONTAINER)
        if ours or declares(key):
            yield f"annotation {key}: {shown(value)}"
    plan = record.pod.recorded.plan
    for key, value in sorted(({} if plan is None else plan.namespace).items()):
        yield f"its namespace said, when the pod was created, {key}: {shown(value)}"
    yield from _limits(record)


def _claims(pod: Pod) -> Iterator[str]:
    """Write what each resource claim gives, or why nobody knows."""
    first = first_names(pod)
    for ref in pod.claims:
        if first[ref.name] != ref.name:
            continue
        users = [item.name for item in pod.containers if ref.name in {c.claim for c in item.claims}]
        used = f", used by {listed(users)}" if users else ", which no container uses"
        made = f", made by the scheduler for {listed(sorted(pod.served))}"
        yield f"{called(ref)}{made if ref.name == EXTENDED else ''}{used}"
        for device in pod.devices:
            if device.claim == ref.name:
                yield f"  request {device.request}: {_amount(device)}"
    if pod.claims and pod.doubt:
        yield f"the amount of its claims is unknown: {pod.doubt}"


def _amount(device: Device) -> str:
    amount, where = device.amount, device.name or "a device that is not chosen yet"
    if not amount.known:
        return f"an unspecified amount of {where}"
    share = f", together with {device.sharers - 1} other pods" if device.sharers > 1 else ""
    return f"{'all' if amount.share else readable(amount.bytes)} of {where}{share}"


def _limits(record: PodRecord) -> Iterator[str]:
    """Write the limit, and those of webhook and agent where they came to different ones."""
    declaration, plan = record.pod.declaration, record.pod.recorded.plan
    planned = None if plan is None else plan.limit_bytes
    if declaration.limit_bytes is not None:
        amount = readable(declaration.limit_bytes)
        rest = "" if declaration.enforced else ", implied by the card and not enforced"
        yield f"= {amount} on each card ({declaration.dialect}: {declaration.basis}){rest}"
        if (request := declaration.request_bytes) not in (None, declaration.limit_bytes):
            yield f"  of which {allowed(request)} are its request, and the rest may be borrowed"
    elif planned is None:
        what = "" if declaration.dialect == UNASKED else " no limit:"
        yield f"={what} {declaration.why_not}"
    if plan is not None and planned is not None and planned != declaration.limit_bytes:
        yield f"the webhook computed with {readable(planned)} on each card ({plan.dialect})"
    for use in () if record.row is None else record.row.uses:
        if use.limit_bytes is not None and use.limit_bytes != record.pod.limit_bytes:
            yield f"its agent enforces {readable(use.limit_bytes)} on card {use.card}"


def _measured(record: PodRecord, display: Display) -> Iterator[str]:
    """Write what the pod holds on each card, process by process, or why nobody knows."""
    snapshot, row = record.snapshot, record.row
    if snapshot is None or row is None:
        said = record.said
        known = said_sentences(said) if said and said.cards else [why_unmeasured(record)]
        yield from _indented(known, display)
        if (planned := record.pod.planned_fence) is not None:
            seen = f"By its plan, which no agent has confirmed: {fence_sentence(planned)}."
            yield from _indented([seen], display)
        return
    if is_stale(snapshot):
        age = snapshot.stale_seconds
        old = f"the last sample is {duration(age)} old" if age else "nothing was ever measured"
        yield from _indented([f"{old}: {snapshot.trouble or 'see its log'}"], display)
    for use in row.uses:
        yield from _use(row, use, snapshot, display)
    if not row.uses:
        yield "  It holds no memory on any card."
    holds = bool(row.uses)
    if not holds and stumbling(record.pod.endings, snapshot.at):
        return  # it comes and goes, which is neither work nor rest
    if row.activity is not None and not is_stale(snapshot):
        yield from _indented([activity_sentence(row.activity, holds=holds)], display)


def why_unmeasured(record: PodRecord) -> str:
    """Return why no agent says what the pod holds."""
    if not record.pod.node:
        return "Nothing: no node has been chosen yet."
    if record.agent is None:
        return f"Unknown: {record.no_agent or f'no agent runs on node {record.pod.node}'}."
    if record.agent.snapshot is None:
        return f"Unknown: {record.agent.trouble}."
    return "Nothing: the agent does not know the pod, or it is not fenced and holds no GPU memory."


def _use(row: PodRow, use: UseRow, snapshot: Snapshot, display: Display) -> Iterator[str]:
    card = card_of(snapshot, use.card)
    index = UNKNOWN if card is None else card.index
    model = "" if card is None else f", {card.model} of {allowed(card.total_bytes)}"
    amounts = f"{held(use.used_bytes)} of {allowed(use.limit_bytes, none='no limit')}"
    share = coloured(Bar(use.used_bytes, use.limit_bytes).cell(display), display)
    yield from wrapped(f"card {index} ({use.card}{model})", "    ", display, first="  ")
    first, second = f"    {amounts}  {share}", coloured(verdict(row, use, snapshot.brake), display)
    fits = width_of(f"{first}  {second}") <= min(display.width or WIDTH, WIDTH)
    yield from [f"{first}  {second}"] if fits else [first, f"    {second}"]
    about = [fence_sentence(use.fence)] if use.fence else []
    for sentence in (*about, *loan_sentences(use, snapshot)):
        yield from wrapped(sentence, "      ", display, first="    ")
    for process in use.processes:
        where = f" in container {process.container}" if process.container else ""
        line = f"PID {process.pid}{where}: {held(process.used_bytes)}"
        yield from wrapped(line, "      ", display, first="    ")
    if card is not None:
        free = allowed(card.free_bytes, none=UNKNOWN)
        what = "requests" if any_borrows(use.card, snapshot) else "limits"
        rest = f"the card has {free} left, its {what} add up to {held(card.committed_bytes)}"
        yield from wrapped(rest, "      ", display, first="    ")
    if row.undeclared:
        yield from wrapped(f"no limit: {row.undeclared}", "      ", display, first="    ")


def _indented(sentences: Iterable[str], display: Display) -> Iterator[str]:
    for sentence in sentences:
        yield from wrapped(sentence, "    ", display, first="  ")


def _bullets(sentences: Iterable[str], display: Display) -> Iterator[str]:
    for sentence in sentences:
        yield from wrapped(sentence, "    ", display, first="  - ")
