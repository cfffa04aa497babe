"""PURE. `top pods`: one line for each pod and card, the worst first; and all tables of `top`."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpufence import names
from gpufence.snapshot import BUSY
from gpufence.text import coarse, printable
from kubectl_gpufence.card_lines import CARD_FIELDS, NODE_FIELDS, card_lines, node_lines
from kubectl_gpufence.cluster_view import (
    MAY_NOT_ASK,
    card_of,
    is_stale,
    row_of,
    staleness,
    why_silent,
)
from kubectl_gpufence.endings import CRASH_LOOP, ENDS, PERHAPS, RESTARTED, how_it_ended, stumbling
from kubectl_gpufence.said import said_uses
from kubectl_gpufence.verdicts import state_text, verdict
from kubectl_gpufence.view import (
    NOT_THERE,
    UNKNOWN,
    Bar,
    Cell,
    Field,
    Tone,
    allowed,
    amount,
    held,
    percent,
    share_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpufence.snapshot import ActivityRow, CardRow, PodActivityRow, PodRow, Snapshot, UseRow
    from kubectl_gpufence.cluster_view import ClusterAnswers, NodeAgent
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.said import SaidUse


_BAR_WIDTH: Final = 108
"""Columns from which on a bar takes no room from the names."""


class PodLine(NamedTuple):
    """
    One pod on one card. `pod` is missing for pods that only the agent counts as using a GPU,
    `row`, `use` and `snapshot` where nothing is measured, and then `state` says why. `activity` is
    what the pod does, as far as a measurement that is not old says so. The request is None where
    that is the limit.
    """

    node: str
    pod: SeenPod | None
    row: PodRow | None
    use: UseRow | None
    snapshot: Snapshot | None
    state: str
    namespace: str
    name: str
    uuid: str
    card: CardRow | None
    limit_bytes: int | None
    told_bytes: int | None
    used_bytes: int | None
    activity: ActivityRow | PodActivityRow | None
    request_bytes: int | None = None
    said: SaidUse | None = None

    @property
    def owner(self) -> str:
        return self.row.owner if self.row else self.pod.owner if self.pod else ""

    @property
    def dialect(self) -> str:
        return self.pod.declaration.dialect if self.pod else ""

    @property
    def mode(self) -> str:
        """Return the mode that counts, or that of the plan where no agent says."""
        if self.row is not None:
            return self.row.mode
        plan = None if self.pod is None else self.pod.recorded.plan
        return "" if plan is None else str(plan.mode)

    @property
    def processes(self) -> int | None:
        return None if self.use is None else len(self.use.processes)

    @property
    def nothing(self) -> str:
        """Return what stands for figures: unknown on a node whose agent says nothing of the pod."""
        return UNKNOWN if self.node and self.row is None else NOT_THERE

    @property
    def stale_seconds(self) -> float | None:
        """
        Return how old the measurement is: 0 while it is fresh, None where there never was one.
        """
        if self.use is None or self.snapshot is None:
            return None
        return self.snapshot.stale_seconds if is_stale(self.snapshot) else 0.0


def pod_line(
    node: str,
    pod: SeenPod | None = None,
    row: PodRow | None = None,
    use: UseRow | None = None,
    snapshot: Snapshot | None = None,
    state: str = "",
    said: SaidUse | None = None,
) -> PodLine:
    """Put together what is known of a pod on a card."""
    known, fresh = pod or row, snapshot is not None and not is_stale(snapshot)
    limit = use.limit_bytes if use else said.on_card.limit_bytes if said else None
    if limit is None and pod is not None:  # which takes long to work out where no plan says it
        limit = pod.limit_bytes
    doing = row if use is None else use
    request = use.promised_bytes if use else said.on_card.request_bytes if said else None
    return PodLine(
        *(node, pod, row, use, snapshot, state),
        namespace=known.namespace if known else "",
        name=known.name if known else "",
        uuid=use.card if use else "",
        card=card_of(snapshot, use.card) if snapshot and use else None,
        limit_bytes=limit,
        told_bytes=pod.told_bytes if pod else use.allowance_bytes if use else None,
        used_bytes=use.used_bytes if use else said.on_card.used_bytes if said else None,
        activity=doing.activity if doing and row and fresh else None,
        request_bytes=request,
        said=said,
    )


def pod_lines(cluster: ClusterAnswers, namespace: str) -> list[PodLine]:
    """Return the lines of a namespace, or of all, by the share of the limit that is used."""
    lines = [line for pod in cluster.pods for line in _of_pod(pod, cluster)]
    listed = {pod.uid for pod in cluster.pods}
    lines += (
        pod_line(node, None, row, use, snapshot)
        for node, snapshot in cluster.snapshots.items()
        for row in snapshot.pods
        if row.uid not in listed and namespace in ("", row.namespace)
        for use in row.uses
    )
    return sorted(lines, key=_rank)


def card_index(line: PodLine) -> str:
    if line.said is not None:
        place = line.said.on_card.card
        return NOT_THERE if place is None else str(place)
    if line.use is None:
        return line.nothing
    return UNKNOWN if line.card is None else str(line.card.index)


def _card_place(line: PodLine) -> int | None:
    if line.card is None:
        return None if line.said is None else line.said.on_card.card
    return line.card.index


def _card_uuid(line: PodLine) -> str | None:
    return None if line.use is None else line.use.card


def _processes(line: PodLine) -> str:
    return line.nothing if line.use is None else str(line.processes)


def held_on_card(line: PodLine) -> str:
    if line.use is None:
        return line.nothing if line.said is None else line.said.used
    return held(line.use.used_bytes)


def share_of_limit(line: PodLine) -> str:
    known = line.use or line.said
    return percent(line.used_bytes, line.limit_bytes) if known else line.nothing


def _idle_seconds(line: PodLine) -> float | None:
    return None if line.activity is None else line.activity.idle_seconds


def idle_for(line: PodLine) -> Cell:
    """
    Return for how long a pod has done nothing on its card, in one unit; of one without memory, for
    how long it has not used the GPU it was given. Starting and failing is neither.
    """
    row = line.activity
    if line.use is None and (row is None or _has_failed(line)):
        return Cell(line.nothing, Tone.FAINT)
    if row is None or row.idle_seconds is None:
        return Cell(UNKNOWN, Tone.FAINT)
    return Cell("busy") if row.state == BUSY else Cell(coarse(row.idle_seconds), Tone.WARN)


def _has_failed(line: PodLine) -> bool:
    return line.state in (*ENDS.values(), PERHAPS, CRASH_LOOP, RESTARTED)


def _of_pod(pod: SeenPod, cluster: ClusterAnswers) -> Iterator[PodLine]:
    agent = cluster.agents.get(pod.node)
    snapshot = None if agent is None else agent.snapshot
    row = row_of(pod, snapshot)
    if row is None:
        ended = how_it_ended(None, pod.endings, pod.recorded.plan, pod.phase)
        why = _state(pod, agent, may_ask=cluster.may_ask)
        says = said_uses(pod) if why == MAY_NOT_ASK else ()
        for said in says or (None,):
            yield pod_line(pod.node, pod, state=ended or why, said=said)
        return
    for use in row.uses:
        yield pod_line(pod.node, pod, row, use, snapshot)
    if not row.uses:
        idle = stumbling(pod.endings, "" if snapshot is None else snapshot.at) or "idle"
        yield pod_line(pod.node, pod, row, snapshot=snapshot, state=how_it_ended(row) or idle)


def _state(pod: SeenPod, agent: NodeAgent | None, *, may_ask: bool) -> str:
    """Return why nothing is measured; an agent lists each pod that is fenced or holds memory."""
    if not pod.node:
        return "not placed yet"
    if agent is None or agent.snapshot is None:
        return why_silent(agent, may_ask=may_ask)
    return "measuring" if pod.injected else "not fenced"


def _rank(line: PodLine) -> tuple[bool, float, str, str, str]:
    used, limit = line.used_bytes, line.limit_bytes
    share = used / limit if used is not None and limit else 0.0
    return used is None, -share, line.namespace, line.name, line.uuid


def told(line: PodLine) -> Cell:
    """Return what was injected: an amount, in parentheses if only planned, or why there is none."""
    pod, amount = line.pod, allowed(line.told_bytes)
    if pod is None or not pod.injected:
        missed = bool(line.row and line.row.mode and not line.row.injected)
        return Cell("not seen", Tone.WARN) if missed else Cell(amount, Tone.FAINT)
    if pod.recorded.trouble:
        return Cell(UNKNOWN, Tone.WARN)
    if pod.injected == names.INJECTED_OPTED_OUT:
        return Cell("opted out", Tone.FAINT)
    if pod.only_planned:
        return Cell(f"({amount})", Tone.FAINT)
    if pod.injected == names.INJECTED_YES or line.told_bytes is not None:
        return Cell(amount)
    return Cell("nothing", Tone.FAINT)


def fence_on(line: PodLine) -> Cell:
    """Return what holds the pod on the card as its agent has it, or in parentheses by its plan."""
    if line.use is not None:
        return Cell(printable(line.use.fence) or NOT_THERE)
    planned = None if line.pod is None else line.pod.planned_fence
    return Cell(NOT_THERE if planned is None else f"({planned})", Tone.FAINT)


def verdict_on(line: PodLine) -> Cell:
    """Return the agent's verdict, or why there is none."""
    if line.row is None or line.use is None or line.snapshot is None:
        failed = _has_failed(line)
        if line.said is not None and not failed:
            return line.said.verdict
        return Cell(state_text(line.state), Tone.BAD if failed else Tone.FAINT)
    if old := staleness(line.snapshot):
        return Cell(old, Tone.WARN)
    cell = verdict(line.row, line.use, line.snapshot.brake)
    word = how_it_ended(line.row) if cell.tone in (Tone.GOOD, Tone.FAINT) else ""
    return Cell(word, Tone.BAD) if word else cell


def _borrowed(line: PodLine) -> int | None:
    return None if line.use is None else line.use.borrowed_bytes


def _owed(line: PodLine) -> int | None:
    return None if line.use is None else line.use.owed_bytes


def borrowed_by(line: PodLine) -> Cell:
    return Cell(line.nothing if line.use is None else held(_borrowed(line) or None, none=NOT_THERE))


def owed_to(line: PodLine) -> Cell:
    """Return what a pod requests and does not hold, in parentheses while others may borrow it."""
    text = line.nothing if line.use is None else held(_owed(line) or None, none=NOT_THERE)
    return Cell(f"({text})", Tone.FAINT) if line.use and line.use.lends else Cell(text)


def requested_by(line: PodLine) -> int | None:
    return line.limit_bytes if line.request_bytes is None else line.request_bytes


MAY_BORROW: Final = attrgetter("request_bytes")

POD_FIELDS: Final[tuple[Field[PodLine], ...]] = (
    Field("namespace", lambda line: line.namespace, "NAMESPACE", shrinks=True, spare=5),
    Field("name", lambda line: line.name, "POD", shrinks=True),
    Field("node", lambda line: line.node, "NODE", shrinks=True, spare=1),
    Field("card", _card_uuid, "UUID", lambda line: line.uuid or line.nothing, wide=5),
    Field("index", _card_place, "CARD", card_index, right=True, spare=3),
    Field("mode", lambda line: line.mode, "MODE", wide=1),
    Field("owner", lambda line: line.owner, "OWNER", wide=4),
    Field("dialect", lambda line: line.dialect, "DIALECT", wide=2),
    Field("injected", lambda line: line.pod.injected if line.pod else ""),
    amount("request", requested_by, "REQUEST", allowed, spare=8)._replace(some=MAY_BORROW),
    amount("limit", lambda line: line.limit_bytes, "LIMIT", allowed, spare=7),
    amount("told", lambda line: line.told_bytes, "CAP", cell=told, spare=4),
    amount("used", lambda line: line.used_bytes, "USED", cell=held_on_card),
    Field(
        title="SHARE",
        cell=lambda line: (
            Bar(line.used_bytes, line.limit_bytes, _BAR_WIDTH)
            if line.use or line.said
            else Cell(line.nothing, Tone.FAINT)
        ),
        spare=6,
        order=lambda line: share_of(line.used_bytes, line.limit_bytes),
        largest_first=True,
    ),
    amount("borrowed", _borrowed, "BORROWED", cell=borrowed_by)._replace(some=MAY_BORROW),
    amount("owed", _owed, "OWED", cell=owed_to, spare=3)._replace(some=MAY_BORROW),
    Field("lends", lambda line: line.use.lends if line.use else None, some=MAY_BORROW),
    Field("outcome", lambda line: line.use.outcome if line.use else line.state),
    Field("over", lambda line: line.use.over_seconds if line.use else None),
    Field("due", lambda line: line.use.due_seconds if line.use else None),
    Field("processes", lambda line: line.processes, "PROCESSES", _processes, wide=3),
    Field("undeclared", lambda line: line.row.undeclared if line.row else ""),
    Field("fence", lambda line: line.use.fence if line.use else None, "FENCE", fence_on, wide=6),
    Field("activity", lambda line: line.activity.state if line.activity else None),
    Field("idle", _idle_seconds, "IDLE", idle_for, right=True, spare=2, largest_first=True),
    Field("evidence", lambda line: line.activity.evidence if line.activity else None),
    Field("stale", lambda line: line.stale_seconds),
    Field("said", lambda line: line.said.document if line.said else None, in_csv=False),
    Field(
        title="VERDICT",
        cell=verdict_on,
        order=lambda line: line.use.over_seconds if line.use else None,
        largest_first=True,
    ),
)
"""What is said of a pod on a card."""


class Sheet(NamedTuple):
    """
    A table: what is said of each line, the lines of a cluster in the `order` of the column of this
    title, and the words that a filter looks at.
    """

    fields: Sequence[Field[Any]]
    lines: Callable[[ClusterAnswers, str], Sequence[Any]]
    order: str
    words: Callable[[Any], str]


def _words_of_pod(line: PodLine) -> str:
    known = f"{line.namespace}/{line.name} {line.node} {line.owner} {line.mode}"
    return f"{known} {line.dialect} {verdict_on(line).text}"


SHEETS: Final[Mapping[str, Sheet]] = {
    "pods": Sheet(POD_FIELDS, pod_lines, "SHARE", _words_of_pod),
    "cards": Sheet(
        CARD_FIELDS,
        lambda cluster, _: card_lines(cluster),
        "NODE",
        lambda line: f"{line.node} {line.card.model} {line.card.uuid} {line.state}",
    ),
    "nodes": Sheet(
        NODE_FIELDS,
        lambda cluster, _: node_lines(cluster),
        "NODE",
        lambda line: f"{line.node} {line.agent.text}",
    ),
}
"""What can be shown, in the order in which a key leads from one to the next."""
