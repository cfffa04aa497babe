"""PURE. What `/v1/snapshot` and the command `snapshot` say: the state in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent.model.sample import UNSENSED
from agent.model.state import PodRows
from gpufence.snapshot import (
    ActivityRow,
    CardRow,
    LeftRow,
    NobodyRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
)

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from agent.model.decision import Verdict
    from agent.model.pod import PodOnNode
    from agent.model.sample import CardSample
    from agent.model.state import About, AgentState, TickResult
    from agent.model.use import CardUse, PodOnCard, ProcessUse


_WHOLE: Final = 100
_UNKNOWN: Final = ActivityRow("unknown", None, "NotMeasurable")
"""What a pod does on a card, where nothing has been found out about that."""
_NO_ROWS: Final = PodRows({})


def snapshot_of(
    state: AgentState,
    about: About,
    now: float,
    at: str,
    more: Sequence[Mapping[str, PodRows]] = (),
) -> Snapshot:
    """
    Return all that is known, with `more` fields of pods by UID; `at` is the time of day of `now`.

    A look that is too old keeps its cards and pods, but every figure of theirs is unknown.
    """
    last = state.last
    status = about.cluster
    current = state.is_current(now, about.gap_seconds)
    return Snapshot(
        node=about.node,
        version=about.version,
        at=at,
        started=about.started,
        driver="" if last is None else last.observation.sample.driver,
        highest="" if status is None or not status.synced else str(status.highest),
        fresh=status is not None and status.fresh,
        stale_seconds=None if state.measured_at is None else max(now - state.measured_at, 0.0),
        brake="" if last is None or last.decision.brake is None else str(last.decision.brake),
        trouble=_trouble(last, current=current),
        cards=() if last is None else tuple(_cards(last, now, current=current)),
        pods=() if last is None else _pods(last, more, current=current),
        nobody=() if last is None or not current else tuple(_nobody(last)),
        cap_slack_bytes=about.cap_slack_bytes,
    )


def _trouble(last: TickResult | None, *, current: bool) -> str:
    if last is None:
        return "the cards have not been looked at yet"
    if not current:
        return "the cards have not been looked at for too long"
    return last.observation.sample.trouble.text or "; ".join(
        map(str, last.observation.sample.unidentified)
    )


def _cards(last: TickResult, now: float, *, current: bool) -> Iterator[CardRow]:
    samples = {item.card.uuid: item for item in last.observation.sample.cards}
    for use in sorted(
        last.observation.cards.values(), key=lambda item: (item.card.index, item.card.uuid)
    ):
        yield _card(last, use, samples[use.card.uuid], now, current=current)


def _card(
    last: TickResult, use: CardUse, sample: CardSample, now: float, *, current: bool
) -> CardRow:
    card = use.card
    memory = use.memory if current else None
    listed = use.listed_at if current else None
    finding = last.decision.findings.get(card.uuid)
    return CardRow(
        uuid=card.uuid,
        index=card.index,
        model=card.full_model,
        total_bytes=card.memory_bytes if memory is None else memory.total_bytes,
        used_bytes=None if memory is None else memory.used_bytes,
        free_bytes=None if memory is None else memory.free_bytes,
        reserved_bytes=None if memory is None else memory.reserved_bytes,
        committed_bytes=0 if finding is None else finding.committed_bytes,
        unattributed_bytes=use.unattributed_bytes if current else None,
        listed_seconds_ago=None if listed is None else max(now - listed, 0.0),
        mps=use.mps,
        trouble=sample.trouble.text,
        busy_share=_busy_share(sample) if current else None,
        left=tuple(
            LeftRow(f"{owner.namespace}/{owner.name}", item.pid, item.used_bytes)
            for item, owner in (use.left if current else ())
        ),
        **(sample.sensors if current else UNSENSED)._asdict(),
    )


def _busy_share(sample: CardSample) -> float | None:
    """Return what the driver said last of the card's utilization, where that can be."""
    work = sample.work
    return None if work is None or work.garbled else work.percent / _WHOLE


def _pods(
    last: TickResult, more: Sequence[Mapping[str, PodRows]], *, current: bool
) -> tuple[PodRow, ...]:
    """Return a row for each, by namespace and name."""
    uses: dict[str, dict[str, PodOnCard]] = {}
    for uuid, card in last.observation.cards.items():
        for uid, use in card.pods.items():
            uses.setdefault(uid, {})[uuid] = use
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in last.decision.verdicts:
        on_cards = verdicts.setdefault(verdict.pod.uid, {})
        if verdict.use is not None:
            on_cards[verdict.uuid] = verdict
    pods = last.observation.pods.by_uid
    added = [uid for rows in more for uid in rows]
    found = []
    for uid in {*uses, *verdicts, *added} & pods.keys():
        additions = [rows.get(uid, _NO_ROWS) for rows in more]
        of_pod = verdicts.get(uid, {})
        of_cards = tuple(
            _use(use, of_pod.get(uuid), last.decision.lending, current=current)._replace(
                **_together(each.uses.get(uuid, {}) for each in additions)
            )
            for uuid, use in sorted(uses.get(uid, {}).items())
        )
        row = _pod(pods[uid], of_cards)
        found.append(row._replace(**_together(each.pod for each in additions)))
    return tuple(sorted(found, key=lambda row: (row.namespace, row.name, row.uid)))


def _process(process: ProcessUse, command: str = "") -> ProcessRow:
    return ProcessRow(process.pid, process.used_bytes, process.container, command)


def _pod(pod: PodOnNode, uses: tuple[UseRow, ...]) -> PodRow:
    owner = "" if pod.controller is None else f"{pod.controller.kind}/{pod.controller.name}"
    return PodRow(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        mode="" if pod.mode is None else str(pod.mode),
        owner=owner,
        injected=pod.injected,
        undeclared=pod.undeclared,
        terminating=pod.terminating,
        uses=uses,
    )


def _together(additions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: item for each in additions for key, item in each.items()}


def _use(
    use: PodOnCard, verdict: Verdict | None, lending: Container[str], *, current: bool
) -> UseRow:
    uuid = use.card.uuid
    limit = use.pod.limits.get(uuid)
    return UseRow(
        card=uuid,
        used_bytes=use.used_bytes if current else None,
        limit_bytes=None if limit is None else limit.limit_bytes,
        allowance_bytes=use.allowance_bytes,
        outcome="" if verdict is None else str(verdict.outcome),
        over_seconds=0.0 if verdict is None else verdict.over_seconds,
        due_seconds=None if verdict is None else verdict.due_seconds,
        processes=tuple(_process(item) for item in use.processes) if current else (),
        activity=_UNKNOWN,
        promised_bytes=use.pod.request_on(uuid),
        borrowed_bytes=use.borrowed_bytes if current else 0,
        owed_bytes=use.owed_bytes if current else 0,
        lends=current and use.owed_bytes > 0 and use.pod.uid in lending,
    )


def _nobody(last: TickResult) -> Iterator[NobodyRow]:
    for uuid, use in last.observation.cards.items():
        for process in use.processes:
            if not process.pod_uid:
                command = "" if process.occupant is None else process.occupant.command
                yield NobodyRow(uuid, _process(process, command))
