"""
PURE. What every model needs and which limit would do, as table, JSON and CSV; and which cards those
limits would free: how many the present pods hold, and how many would do.

Pods are packed first fit, the largest first, on each model of card by itself: never on more than
11/9 of the least number of cards and one (Johnson 1973), and as a person would do it by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.need import Confidence
from gpufence.need.measured import LEAST_PODS, LEAST_SECONDS
from gpufence.need.summary import together
from gpufence.owners import topmost
from gpufence.text import duration
from kubectl_gpufence.view import Cell, Field, Rows, Tone, allowed, amount, exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.need import NeedSummary
    from gpufence.snapshot import CardRow, PodRow, Snapshot, UseRow


_TONES: Final = {
    Confidence.LOW: Tone.FAINT,
    Confidence.MEDIUM: Tone.PLAIN,
    Confidence.HIGH: Tone.GOOD,
}


def chosen(summaries: Iterable[NeedSummary], namespace: str) -> list[NeedSummary]:
    """Return those of a namespace, or of all, in the order of their names."""
    kept = (item for item in summaries if namespace in ("", item.key.namespace))
    return sorted(kept, key=lambda item: item.key)


def title(item: NeedSummary) -> str:
    return f"{item.key.kind}/{item.key.name}"


def unsure(items: Iterable[NeedSummary]) -> tuple[str, ...]:
    """Say why some have no target yet, where they are measured too little."""
    if all(item.confidence is not Confidence.LOW for item in items):
        return ()
    takes = f"{duration(LEAST_SECONDS)} of memory held, by {LEAST_PODS} pods"
    return (f"no target at low confidence: it takes {takes}; a PEAK is no limit to set",)


def _container(item: NeedSummary) -> str:
    return item.key.container


def _card(item: NeedSummary) -> str:
    return item.key.card


def _request(item: NeedSummary) -> int | None:
    return item.request_bytes


def _target(item: NeedSummary) -> Cell:
    larger = item.limit_bytes is not None and (item.target_bytes or 0) > item.limit_bytes
    return Cell(allowed(item.target_bytes), Tone.BAD if larger else Tone.STRONG)


def _confidence(item: NeedSummary) -> Cell:
    return Cell(str(item.confidence), _TONES[item.confidence])


def _remark(item: NeedSummary) -> Cell:
    """Return what somebody should know before he follows."""
    remarks = (
        ("perhaps at its cap" if item.perhaps else "at its cap", item.capped),
        (f"OOM {item.out_of_memory}d", item.out_of_memory),
        (f"evicted {item.evictions}x", item.evictions),
        (f"seen for {duration(item.held_seconds)}", item.confidence is Confidence.LOW),
    )
    return Cell(", ".join(text for text, applies in remarks if applies), Tone.WARN)


NEED_FIELDS: Final[tuple[Field[NeedSummary], ...]] = (
    Field("namespace", lambda item: item.key.namespace, "NAMESPACE", shrinks=True, spare=5),
    Field("kind", lambda item: item.key.kind),
    Field("name", lambda item: item.key.name, "OWNER", title, shrinks=True),
    Field("container", _container, "CONTAINER", _container, shrinks=True, spare=6),
    Field("card", _card, "CARD", _card, shrinks=True, spare=2),
    amount("limit", lambda item: item.limit_bytes, "LIMIT", allowed, spare=4),
    Field("told", lambda item: exact(item.told_bytes), in_csv=False),
    amount("peak", lambda item: item.peak_bytes, "PEAK", spare=7),
    amount("request", _request, "REQUEST", allowed, spare=8)._replace(some=_request),
    amount("target", lambda item: item.target_bytes, "TARGET", cell=_target),
    Field("confidence", lambda item: str(item.confidence), "CONFIDENCE", _confidence, spare=3),
    Field("days", lambda item: item.days),
    Field("last_day", lambda item: item.last_day, in_csv=False),
    Field("pods", lambda item: item.pods),
    Field("held_seconds", lambda item: round(item.held_seconds)),
    Field("capped", lambda item: item.capped),
    Field("out_of_memory", lambda item: item.out_of_memory),
    Field("evictions", lambda item: item.evictions),
    Field("reasons", lambda item: item.reasons.said, in_csv=False),
    Field(title="REMARK", cell=_remark, spare=1),
)
"""What is said of a model's need."""


def need_listing(
    items: Sequence[NeedSummary], namespace: str, source: str, notes: Sequence[str]
) -> Rows[NeedSummary]:
    """Put the needs of a namespace, or of all, together with where they come from."""
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    return Rows(
        name="needs",
        fields=NEED_FIELDS,
        rows=items,
        nothing=f"no agent has measured a model {where} yet",
        notes=notes,
        without=("NAMESPACE",) if namespace else (),
        about={"source": source},
    )


Owner = tuple[str, str, str]


class PodShare(NamedTuple):
    """
    One pod on one card, and what it should have there: `by_target` where its owner has a target,
    else its present limit, or what it holds.
    """

    pod: str
    card: str
    model: str
    share_bytes: int
    by_target: bool


class Packing(NamedTuple):
    """
    The cards of one model: how many there are, are held, and would do for `shares` of pods, of
    which so many count by their target.
    """

    model: str
    memory_bytes: int
    cards: int
    held: int
    needed: int
    shares: int
    by_target: int
    share_bytes: int

    @property
    def freed(self) -> int:
        return max(self.held - self.needed, 0)


def packings(
    snapshots: Mapping[str, Snapshot], summaries: Iterable[NeedSummary], namespace: str
) -> list[Packing]:
    """Pack the pods of a namespace, or of all, that hold memory on any card."""
    targets = _targets(summaries)
    shares: dict[str, list[PodShare]] = {}
    cards: dict[str, list[CardRow]] = {}
    for snapshot in snapshots.values():
        on_node = {card.uuid: card for card in snapshot.cards}
        for card in snapshot.cards:
            cards.setdefault(card.model, []).append(card)
        for pod in snapshot.pods:
            if namespace in ("", pod.namespace):
                for use in pod.uses:
                    card_of_use = on_node.get(use.card)
                    share = None if card_of_use is None else _share(pod, use, card_of_use, targets)
                    if share is not None:
                        shares.setdefault(share.model, []).append(share)
    return [_packing(model, cards[model], shares.get(model, [])) for model in sorted(cards)]


def cards_needed(shares: Iterable[PodShare], memory_bytes: int) -> int:
    """Return how many cards of this size hold all shares, no two of one pod on the same."""
    free: list[int] = []
    pods: list[set[str]] = []
    for share in sorted(shares, key=lambda item: (-item.share_bytes, item.pod, item.card)):
        amount = min(share.share_bytes, memory_bytes)
        place = next(
            (at for at, left in enumerate(free) if left >= amount and share.pod not in pods[at]),
            len(free),
        )
        if place == len(free):
            free.append(memory_bytes)
            pods.append(set())
        free[place] -= amount
        pods[place].add(share.pod)
    return len(free)


def _packing(model: str, cards: Sequence[CardRow], shares: Sequence[PodShare]) -> Packing:
    memory = min(card.total_bytes for card in cards)
    return Packing(
        model,
        memory,
        cards=len(cards),
        held=len({share.card for share in shares}),
        needed=cards_needed(shares, memory),
        shares=len(shares),
        by_target=sum(share.by_target for share in shares),
        share_bytes=sum(share.share_bytes for share in shares),
    )


def _targets(summaries: Iterable[NeedSummary]) -> dict[tuple[Owner, str], int | None]:
    """Add up the containers of each owner on each model of card; None where one has no target."""
    rows: dict[tuple[Owner, str], list[NeedSummary]] = {}
    for item in summaries:
        rows.setdefault((item.key[:3], item.key.card), []).append(item)
    return {key: _owners_target(together(items)) for key, items in rows.items()}


def _owners_target(groups: Sequence[Sequence[NeedSummary]]) -> int | None:
    """Return the most that containers need which run at the same time."""
    targets = [item.target_bytes for group in groups for item in group]
    if None in targets:
        return None
    return max(sum(item.target_bytes or 0 for item in group) for group in groups)


def _share(
    pod: PodRow, use: UseRow, card: CardRow, targets: Mapping[tuple[Owner, str], int | None]
) -> PodShare | None:
    target = targets.get((_owner(pod), card.model))
    amount = target or use.limit_bytes or use.used_bytes
    if not amount:
        return None
    return PodShare(pod.uid, card.uuid, card.model, amount, bool(target))


def _owner(pod: PodRow) -> Owner:
    """Return the owner as needs name it; an agent tells the controller."""
    kind, _, name = topmost(pod.owner or f"Pod/{pod.name}").partition("/")
    return pod.namespace, kind, name
