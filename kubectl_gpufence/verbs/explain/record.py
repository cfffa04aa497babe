"""PURE. One pod: all that is known of it, what will become of it, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.mode import MODES
from gpufence.plan import Done
from gpufence.share import CAP_SLACK
from gpufence.target import enough_for
from kubectl_gpufence.cluster_view import card_of, row_of
from kubectl_gpufence.endings import what_helps
from kubectl_gpufence.pods import read_event
from kubectl_gpufence.refusals import REFUSED
from kubectl_gpufence.said import said_follows
from kubectl_gpufence.verbs.explain.loans import what_to_give_back
from kubectl_gpufence.verdicts import what_follows
from kubectl_gpufence.view import UNKNOWN, allowed, held

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpufence.memory_condition import MemoryCondition
    from gpufence.plan import ContainerPlan, Setting
    from gpufence.shape import Object
    from gpufence.snapshot import PodRow, Snapshot, UseRow
    from kubectl_gpufence.cluster_view import NodeAgent
    from kubectl_gpufence.pods import SeenEvent, SeenPod


_REASONS = frozenset(
    {
        names.LIMIT_EXCEEDED,
        names.WOULD_EVICT,
        names.EVICTED,
        names.EVICTION_BLOCKED,
        names.EVICTION_FAILED,
        names.RECALLED,
        names.LENT,
        names.TERMINATION_STUCK,
        names.CAP_INEFFECTIVE,
        names.CAP_REACHED,
        names.CAP_TOO_LOW,
        names.LIMIT_ABSENT,
        names.UNDECLARED,
        names.IDLE_WARNING,
        names.IDLE_RELEASED,
        names.IDLE_WOKEN,
        REFUSED,  # of an owner: its pods, by the webhook or by a quota
    }
)


class PodRecord(NamedTuple):
    """
    What the explanation is made from. `mode` is the namespace's label, empty where it has none
    and None where it cannot be read; `no_agent` says why none can be asked, `hidden` that they are
    not to be seen; `lost` says that its owner has lost pods, `release` what the controller makes of
    its owner.
    """

    pod: SeenPod
    mode: str | None = None
    agent: NodeAgent | None = None
    no_agent: str = ""
    events: tuple[SeenEvent, ...] = ()
    hidden: bool = False
    lost: tuple[str, ...] = ()
    release: str = ""

    @property
    def snapshot(self) -> Snapshot | None:
        return None if self.agent is None else self.agent.snapshot

    @property
    def row(self) -> PodRow | None:
        return row_of(self.pod, self.snapshot)

    @property
    def peaks(self) -> dict[str, int]:
        """Return the most that containers held which have failed since, as far as it was seen."""
        rows = () if self.row is None else self.row.ended
        return {item.container: item.peak_bytes or 0 for item in rows}

    @property
    def said(self) -> MemoryCondition | None:
        """Return what the pod says of itself, where its agent may not be asked."""
        denied = self.hidden or (self.agent is not None and self.agent.denied)
        return self.pod.said if denied else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the creator of the pod was warned about."""
        text = self.pod.annotations.get(names.WARNINGS, "")
        return tuple(line for line in text.splitlines() if line.strip())

    @property
    def settings(self) -> Iterator[tuple[str, ContainerPlan, Setting]]:
        """Return every setting of the plan with its container."""
        plan = self.pod.recorded.plan
        for name, container in ({} if plan is None else plan.containers).items():
            for setting in container.settings:
                yield name, container, setting


def read_events(items: Iterable[Object]) -> tuple[SeenEvent, ...]:
    """
    Read what agents and the controller have said of a pod, and why an owner's were refused, in the
    order of when it was said last.

    Raises:
        InvalidError: something among them is no event.
    """
    events = (read_event(item) for item in items if item.get("reason") in _REASONS)
    return tuple(sorted(events, key=lambda event: event.at))


def what_will_be(record: PodRecord) -> Iterator[str]:
    """Return what will become of the pod on each card, and what holds that back."""
    snapshot, row = record.snapshot, record.row
    if snapshot is None or row is None:
        if record.said is not None:
            yield from said_follows(record.said)
        return
    for use in row.uses:
        card = card_of(snapshot, use.card)
        where = f"card {UNKNOWN if card is None else card.index}: " if len(row.uses) > 1 else ""
        yield where + what_follows(row, use)
    if record.mode in MODES and row.mode in MODES[: MODES.index(record.mode)]:
        yield _switched_off(record, row.mode)
    if snapshot.brake and row.mode:
        yield f"No pod on this node is evicted at the moment: {snapshot.brake}."
    if not snapshot.fresh:
        yield "The agent cannot reach the API server: no pod on this node is evicted."
    if record.release:
        yield record.release


def _switched_off(record: PodRecord, highest: str) -> str:
    """Say what the kill switch takes from a mode, and what of it is in force all the same."""
    pod = record.pod
    capped = pod.injected == names.INJECTED_YES and not pod.only_planned
    caps = f"; the caps of mode {record.mode} are in force" if capped else ""
    return f"No pod is evicted, since the operator's kill switch is at {highest}{caps}."


def to_do(record: PodRecord) -> tuple[str, ...]:
    """Return one sentence for each thing to do."""
    plan = record.pod.recorded.plan
    ended = what_helps(record.pod.endings, plan, record.peaks)
    sentences = (
        *record.lost,
        *ended,
        *_about_plan(record),
        *_about_limit(record),
        *_about_use(record),
    )
    unmeasured = record.row is None and bool(record.pod.node) and record.mode != ""
    unmeasured = unmeasured and not (record.said and record.said.cards)
    nothing = (
        "Nothing is known to be wrong, but what it holds was not measured: `kubectl gpufence "
        "doctor` says why."
    )
    return tuple(dict.fromkeys(sentences)) or (nothing if unmeasured else "Nothing.",)


def _about_plan(record: PodRecord) -> Iterator[str]:
    pod = record.pod
    if pod.recorded.newer:
        yield "Upgrade this plugin to the version of the webhook."
    elif pod.recorded.trouble:
        yield f"Delete the pod, so that its controller makes it anew: its {names.PLAN} is damaged."
    if not pod.injected and record.mode in MODES:
        yield (
            "Delete the pod, so that its controller makes it anew and the webhook sees it; "
            "if that changes nothing, run `kubectl gpufence doctor`."
        )
    if not pod.injected and record.mode == "":
        yield (
            f"To have its memory fenced, label the namespace {names.MODE}=observe and look again."
        )
    if any(line.startswith("namespace ") for line in record.warnings):
        yield "Have the namespace's annotation in WARNINGS corrected: it counts for nothing."
    for name, _, setting in record.settings:
        if setting.done is Done.LOWERED:
            yield (
                f"{setting.env} of container {name} was lowered to what its limit allows: "
                "ask for more memory, or set a smaller value yourself."
            )
        elif setting.done is Done.LEFT:
            yield (
                f"{setting.env} of container {name} comes from elsewhere and was left: see that it "
                f"is within {allowed(pod.limit_bytes, none='the limit')}."
            )


def _about_limit(record: PodRecord) -> Iterator[str]:
    undeclared = record.row is not None and bool(record.row.undeclared)
    implied = not record.pod.declaration.enforced
    if undeclared or implied or record.pod.limit_bytes is None:
        yield (
            f"Request an amount of GPU memory, or set the annotation {names.MEMORY}, "
            "such as 6Gi, on the pod's template."
        )


def _about_use(record: PodRecord) -> Iterator[str]:
    row = record.row
    for use in () if row is None else row.uses:
        yield from _too_much(record, use.used_bytes, use.limit_bytes, len(use.processes))
        yield from _about_processes(record, use)
        yield from what_to_give_back(use)
    for item in () if record.said is None else record.said.cards:
        yield from _too_much(record, item.used_bytes, item.limit_bytes, 1)


def _too_much(
    record: PodRecord, used: int | None, limit: int | None, processes: int
) -> Iterator[str]:
    if used is not None and limit is not None and used > limit:
        enough = enough_for(used, processes, _reserves(record))
        yield (
            f"It holds {held(used)}, {held(used - limit)} over its limit: let its framework "
            f"use less, or give it about {allowed(enough)} ({names.MEMORY}, or the amount it "
            "requests)."
        )


def _about_processes(record: PodRecord, use: UseRow) -> Iterator[str]:
    plan = record.pod.recorded.plan
    if plan is None:
        return
    for name, container in plan.containers.items():
        own = [process for process in use.processes if process.container == name]
        if len(own) > container.processes:
            yield (
                f"{len(own)} processes of container {name} share a card, the plan counts on "
                f"{container.processes}: set {names.PROCESSES_PER_CARD} to {len(own)}."
            )
        most = _most(container, record)
        above = [item for item in own if most is not None and (item.used_bytes or 0) > most]
        if above:
            yield (
                f"Process {above[0].pid} of container {name} holds {held(above[0].used_bytes)}, "
                f"more than it is configured to allocate ({allowed(container.cap_bytes)}) with its "
                f"context: it ignores its settings, see docs/frameworks.md."
            )


def _most(container: ContainerPlan, record: PodRecord) -> int | None:
    """Return what a process that keeps to its settings can hold at most."""
    most = [
        item.allowance_bytes + (item.reserve_bytes or 0)
        for item in container.settings
        if item.allowance_bytes is not None and item.done not in (Done.LEFT, Done.PLANNED)
    ]
    slack = None if record.snapshot is None else record.snapshot.cap_slack_bytes
    if not most or container.cap_bytes is None or not container.kept:
        return None
    return max(most) + (CAP_SLACK if slack is None else slack)


def _reserves(record: PodRecord) -> list[int]:
    """Return the contexts' reserves that the plan reckoned with."""
    return [item.reserve_bytes for _, _, item in record.settings if item.reserve_bytes]
