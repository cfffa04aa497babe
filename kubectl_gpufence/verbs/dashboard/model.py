"""
PURE. What the page shows, as JSON: the lines of `top`, with the words that `top` has for them, and
numbers beside them for bars, for sorting and for counting down.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from gpufence.shape import Object, as_object, as_text
from gpufence.text import printable
from kubectl_gpufence.card_lines import card_lines, node_lines, total_of
from kubectl_gpufence.cluster_view import staleness
from kubectl_gpufence.pod_lines import (
    card_index,
    held_on_card,
    idle_for,
    pod_lines,
    share_of_limit,
    told,
    verdict_on,
)
from kubectl_gpufence.verbs.dashboard.history import card_key, pod_key
from kubectl_gpufence.verdicts import verdict_parts
from kubectl_gpufence.view import (
    UNKNOWN,
    Cell,
    Tone,
    allowed,
    counted,
    gibibytes,
    held,
    percent,
    share_tone,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kubectl_gpufence.card_lines import CardLine, NodeLine
    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.pod_lines import PodLine

MOST_EVENTS = 200

_MOST_TEXT = 1000


class PageEvent(NamedTuple):
    """Something that an agent or the controller has said."""

    at: str
    reason: str
    about: str
    times: int
    message: str
    warning: bool


def read_page_event(item: Object) -> PageEvent:
    """
    Read an Event.

    Raises:
        InvalidError: it is none.
    """
    metadata = as_object(item.get("metadata"), "metadata")
    about = as_object(item.get("involvedObject"), "involvedObject")
    last = item.get("lastTimestamp") or item.get("eventTime") or metadata.get("creationTimestamp")
    names = (about.get(key) for key in ("namespace", "kind", "name"))
    count = item.get("count")
    return PageEvent(
        at=as_text(last, "lastTimestamp"),
        reason=as_text(item.get("reason"), "reason"),
        about="/".join(as_text(name, "involvedObject") for name in names if name),
        times=count if isinstance(count, int) else 1,
        message=as_text(item.get("message"), "message"),
        warning=item.get("type") == "Warning",
    )


def page_model(
    cluster: ClusterAnswers, namespace: str, events: Iterable[PageEvent] = ()
) -> dict[str, object]:
    """Write all that the page shows of one look."""
    pods, cards = pod_lines(cluster, namespace), card_lines(cluster)
    shown = _shown_bytes(pods)
    newest = sorted(events, key=lambda event: event.at, reverse=True)[:MOST_EVENTS]
    return {
        "namespace": namespace,
        "sum": _sum(pods, cards),
        "notes": [printable(note) for note in cluster.notes],
        "nodes": [_node(line) for line in node_lines(cluster)],
        "cards": [_card(line, shown.get(card_key(line), 0)) for line in cards],
        "pods": [_pod(line) for line in pods],
        "events": [_event(event) for event in newest],
    }


def _sum(pods: Sequence[PodLine], cards: Sequence[CardLine]) -> dict[str, object]:
    """Write the sums of all: what is unknown is counted, and no part of any amount."""
    known = [line.card for line in cards if line.card.used_bytes is not None]
    used = total_of([card.used_bytes for card in known])
    total = total_of([card.total_bytes for card in known])
    over = {(line.namespace, line.name) for line in pods if line.use and line.use.over_seconds >= 1}
    unseen = {(line.namespace, line.name) for line in pods if held_on_card(line) == UNKNOWN}
    return {
        "pods": counted(len({(line.namespace, line.name) for line in pods}), "pod"),
        "over": len(over),
        "unseen": len(unseen),
        "cards": counted(len(cards), "card"),
        "unknown": len(cards) - len(known),
        "used": gibibytes(used),
        "total": gibibytes(total),
        "share": percent(used, total),
    }


def _node(line: NodeLine) -> dict[str, object]:
    return {
        "name": line.node,
        "agent": _cell(line.agent),
        "used": gibibytes(line.used_bytes),
        "total": gibibytes(line.total_bytes),
        "share": percent(line.used_bytes, line.total_bytes),
        "ratio": _ratio(line.used_bytes, line.total_bytes),
        "over": line.over,
    }


def _card(line: CardLine, shown_bytes: int) -> dict[str, object]:
    """
    Write a card; `parts` are the shares of it that the shown pods, other pods and nobody's
    processes hold, none of them where its use is unknown.
    """
    card, total = line.card, line.card.total_bytes
    return {
        "key": card_key(line),
        "node": line.node,
        "index": card.index,
        "model": printable(card.model),
        "uuid": printable(card.uuid),
        "used": held(card.used_bytes),
        "total": allowed(total),
        "share": percent(card.used_bytes, total),
        "tone": _tone(card.used_bytes, total),
        "committed": held(line.committed_bytes),
        "nobody": held(card.unattributed_bytes),
        "parts": _parts(card.used_bytes, card.unattributed_bytes, shown_bytes, total),
        "promised": _ratio(line.committed_bytes, total),
        "state": _cell(_state(line)),
    }


def _parts(used: int | None, nobody: int | None, shown: int, total: int) -> list[float]:
    if used is None or not total:
        return []
    shown, free_of = min(shown, used), used
    free_of -= shown
    nobodys = min(nobody or 0, free_of)
    return [_share(part, total) for part in (shown, free_of - nobodys, nobodys)]


def _state(line: CardLine) -> Cell:
    if line.state == "ok":
        return Cell("", Tone.GOOD)
    return Cell(line.state, Tone.FAINT if line.snapshot is None else Tone.WARN)


def _pod(line: PodLine) -> dict[str, object]:
    """
    Write a pod on a card; `ratio` and `cap` are what it holds and what its frameworks were told, in
    its limit.
    """
    idle = line.activity
    return {
        "namespace": printable(line.namespace),
        "name": printable(line.name),
        "node": line.node,
        "card": card_index(line),
        "key": f"{line.node}/{line.uuid}",
        "line": pod_key(line),
        "owner": printable(line.owner),
        "mode": printable(line.mode),
        "limit": allowed(line.limit_bytes),
        "told": _cell(told(line)),
        "used": held_on_card(line),
        "share": share_of_limit(line),
        "tone": _tone(line.used_bytes, line.limit_bytes),
        "ratio": _ratio(line.used_bytes, line.limit_bytes),
        "cap": _ratio(line.told_bytes, line.limit_bytes),
        "bytes": line.used_bytes,
        "most": line.limit_bytes,
        "idle": _cell(idle_for(line)),
        "since": None if idle is None else idle.idle_seconds,
        "verdict": _verdict(line),
    }


def _verdict(line: PodLine) -> dict[str, object]:
    """Write a verdict, with the times that go on by themselves until the next look."""
    fresh = line.snapshot is not None and not staleness(line.snapshot)
    if line.row is None or line.use is None or not fresh:
        return {"text": _cell(verdict_on(line)), "over": None, "due": None, "verb": ""}
    parts = verdict_parts(line.row, line.use)
    return {
        "text": _cell(parts.cell),
        "over": parts.over_seconds,
        "due": parts.due_seconds,
        "verb": parts.verb,
    }


def _event(event: PageEvent) -> dict[str, object]:
    return {
        "at": printable(event.at),
        "reason": printable(event.reason),
        "about": printable(event.about),
        "times": event.times,
        "message": printable(event.message, _MOST_TEXT),
        "tone": Tone.WARN.name.lower() if event.warning else Tone.PLAIN.name.lower(),
    }


def _shown_bytes(lines: Iterable[PodLine]) -> Mapping[str, int]:
    held_of: dict[str, int] = defaultdict(int)
    for line in lines:
        if line.used_bytes:
            held_of[f"{line.node}/{line.uuid}"] += line.used_bytes
    return held_of


def _cell(cell: Cell) -> list[str]:
    return [printable(cell.text), cell.tone.name.lower()]


def _tone(used: int | None, limit: int | None) -> str:
    tone = Tone.FAINT if used is None or not limit else share_tone(used, limit)
    return tone.name.lower()


def _ratio(used: int | None, limit: int | None) -> float | None:
    return None if used is None or not limit else _share(used, limit)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4)
