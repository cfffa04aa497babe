"""
PURE. What the page shows, as JSON: the lines of `top`, with the words that `top` has for them, and
numbers beside them for bars, for sorting and for counting down.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.owners import topmost
from gpufence.text import printable
from kubectl_gpufence.card_lines import card_lines, node_lines
from kubectl_gpufence.cluster_view import is_stale, staleness
from kubectl_gpufence.pod_lines import (
    card_index,
    fence_on,
    held_on_card,
    idle_for,
    pod_lines,
    share_of_limit,
    told,
    verdict_on,
)
from kubectl_gpufence.refusals import REFUSED
from kubectl_gpufence.verbs.dashboard.episodes import episodes, group_of
from kubectl_gpufence.verdicts import verdict_parts
from kubectl_gpufence.view import (
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

    from gpufence.capped import Ending
    from gpufence.snapshot import CardRow
    from kubectl_gpufence.card_lines import CardLine, NodeLine
    from kubectl_gpufence.cluster_view import ClusterAnswers
    from kubectl_gpufence.pod_lines import PodLine
    from kubectl_gpufence.pods import SeenEvent
    from kubectl_gpufence.verbs.dashboard.episodes import EventEpisode


_MOST_TEXT = 1000
_ENDS = frozenset({names.EVICTED, names.CAP_REACHED, REFUSED})


def page_model(
    cluster: ClusterAnswers, namespace: str, events: Iterable[SeenEvent] = ()
) -> dict[str, object]:
    """Write all that the page shows of one look."""
    pods, cards = pod_lines(cluster, namespace), card_lines(cluster)
    shown = _shown_bytes(pods)
    models = _models(cards)
    return {
        "namespace": namespace,
        "notes": [printable(note) for note in cluster.notes],
        "nodes": [_node(line, models.get(line.node, "")) for line in node_lines(cluster)],
        "cards": [_card(line, shown.get(card_key(line), 0)) for line in cards],
        "pods": [_pod(line) for line in pods],
        "episodes": [_episode(item) for item in episodes(events, pods)],
    }


def _models(cards: Sequence[CardLine]) -> dict[str, str]:
    """Return of each node whose cards are all alike how many there are, and which."""
    of_node: dict[str, list[str]] = defaultdict(list)
    for line in cards:
        of_node[line.node].append(_model(line.card))
    return {
        node: f"{len(models)} \u00d7 {models[0]}"
        for node, models in of_node.items()
        if len({*models}) == 1
    }


def _model(card: CardRow) -> str:
    return f"{printable(card.model) or 'unknown model'}, {allowed(card.total_bytes)}"


def _node(line: NodeLine, models: str) -> dict[str, object]:
    return {
        "name": line.node,
        "models": models,
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
        "model": _model(card),
        "uuid": printable(card.uuid),
        "held": card.used_bytes,
        "size": total,
        "used": held(card.used_bytes),
        "total": allowed(total),
        "share": percent(card.used_bytes, total),
        "tone": _tone(card.used_bytes, total),
        "committed": held(line.committed_bytes),
        "nobody": held(card.unattributed_bytes),
        "parts": _parts(card.used_bytes, card.unattributed_bytes, shown_bytes, total),
        "promised": _ratio(line.committed_bytes, total),
        "facts": _facts(card),
        "state": _cell(_state(line)),
    }


def _facts(card: CardRow) -> list[str]:
    """Return what is known of how hard a card works, in the order in which nvitop has it."""
    of = "" if card.most_watts is None else f" of {card.most_watts}"
    facts = (
        None if card.busy_share is None else f"{card.busy_share:.0%} busy",
        None if card.celsius is None else f"{card.celsius} \u00b0C",
        None if card.watts is None else f"{card.watts}{of} W",
    )
    return [fact for fact in facts if fact is not None]


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
        "group": printable(group_of(line)),
        "owner": printable(topmost(line.owner)) if line.owner else "",
        "mode": printable(line.mode),
        "limit": allowed(line.limit_bytes),
        "told": _cell(told(line)),
        "fence": _cell(fence_on(line)),
        "used": held_on_card(line),
        "share": share_of_limit(line),
        "tone": _tone(line.used_bytes, line.limit_bytes),
        "ratio": _ratio(line.used_bytes, line.limit_bytes),
        "cap": _ratio(line.told_bytes, line.limit_bytes),
        "bytes": line.used_bytes,
        "most": line.limit_bytes,
        **_loan(line),
        "idle": _cell(idle_for(line)),
        "since": None if idle is None else idle.idle_seconds,
        "verdict": _verdict(line),
        "endings": [_ending(item) for item in (line.pod.endings if line.pod else ())],
    }


def _loan(line: PodLine) -> dict[str, object]:
    """Write what is the pod's own of its limit, where that is less."""
    request = line.request_bytes
    if request is None:
        return {}
    return {"request": allowed(request), "own": _ratio(request, line.limit_bytes)}


def _verdict(line: PodLine) -> dict[str, object]:
    """Write a verdict, with the times that go on by themselves until the next look."""
    said = line.snapshot
    if line.row is None or line.use is None or said is None or staleness(said):
        return {"text": _cell(verdict_on(line)), "over": None, "due": None, "verb": "", "rest": ""}
    parts = verdict_parts(line.row, line.use, said.brake)
    timed = parts.over_seconds is not None or parts.due_seconds is not None
    return {
        "text": _cell(parts.cell if timed or parts.rest else verdict_on(line)),
        "over": parts.over_seconds,
        "due": parts.due_seconds,
        "verb": parts.verb,
        "rest": parts.rest,
    }


def _ending(item: Ending) -> dict[str, object]:
    """Write how a container has failed: the words before the time of that, and those behind it."""
    reason = f" ({item.reason})" if item.reason not in ("", "Error") else ""
    said = f', said "{item.out_of_memory}"' if item.out_of_memory else ""
    waits = f", now {item.waiting}" if item.waiting else ""
    restarts = counted(item.restarts, "restart")
    return {
        "what": printable(f"{item.container} ended with exit code {item.code}{reason}"),
        "at": printable(item.at),
        "rest": printable(f"{said}, {restarts}{waits}"),
        "restarts": item.restarts,
        "waits": bool(item.waiting),
    }


def _episode(item: EventEpisode) -> dict[str, object]:
    return {
        "group": printable(item.group),
        "reason": printable(item.reason),
        "since": printable(item.since),
        "at": printable(item.at),
        "times": item.times,
        "pods": item.pods,
        "story": _story(item),
        "message": printable(item.message, _MOST_TEXT),
        "tone": Tone.WARN.name.lower() if item.warning else Tone.PLAIN.name.lower(),
    }


def _story(item: EventEpisode) -> list[str] | None:
    """
    Return of whom more can be said, with the namespace: the owner, as `Kind/name`, where pods of it
    have ended or were refused, else the pod.
    """
    namespace, _, owner = item.group.partition("/")
    if item.reason in _ENDS and "/" in owner and not owner.startswith("Pod/"):
        return [printable(namespace), printable(owner)]
    of_pod = item.about.kind == "Pod"
    return [printable(item.about.namespace), printable(item.about.name)] if of_pod else None


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


STEP_SECONDS: Final = 10.0
HOUR_SECONDS: Final = 3600.0
MOST_LINES: Final = 10_000
"""Lines that are kept, those of pods that are gone among them; 360 points of one take 720 bytes."""

_MOST: Final = int(HOUR_SECONDS / STEP_SECONDS)
_WHOLE: Final = 1000
_UNKNOWN: Final = 2**16 - 1


def shares_of_cards(cluster: ClusterAnswers) -> dict[str, int | None]:
    """Return how many thousandths of each card are held at this moment, None where nobody knows."""
    return {
        card_key(line): None
        if line.snapshot is None or is_stale(line.snapshot)
        else _thousandths(line.card.used_bytes, line.card.total_bytes)
        for line in card_lines(cluster)
    }


def shares_of_pods(cluster: ClusterAnswers, namespace: str) -> dict[str, int | None]:
    """
    Return how many thousandths of its limit each pod holds on each card, or of the card where it
    has none.
    """
    return {
        pod_key(line): None if line.stale_seconds else _thousandths(line.used_bytes, _most(line))
        for line in pod_lines(cluster, namespace)
        if line.use is not None
    }


def card_key(line: CardLine) -> str:
    return f"{line.node}/{line.card.uuid}"


def pod_key(line: PodLine) -> str:
    """
    Return what no other pod has, on no other card; one that is made again under a name is another.
    """
    known = line.pod or line.row
    return f"{known.uid if known else ''}/{card_index(line)}"


def _most(line: PodLine) -> int | None:
    if line.limit_bytes is not None or line.card is None:
        return line.limit_bytes
    return line.card.total_bytes


def _thousandths(held: int | None, whole: int | None) -> int | None:
    return None if held is None or not whole else min(held * _WHOLE // whole, _UNKNOWN - 1)


class HourPoint(NamedTuple):
    """A moment, and the number of the look that it comes from."""

    number: int
    at: float


class HourHistory:
    """Lines of an hour at most, each with a value for every point, where somebody knew one."""

    def __init__(self) -> None:
        self._points: deque[HourPoint] = deque()
        self._lines: dict[str, array[int]] = {}

    def is_due(self, at: float) -> bool:
        return not self._points or at - self._points[-1].at >= STEP_SECONDS

    def add(self, number: int, at: float, shares: Mapping[str, int | None]) -> None:
        """Take in a look, and forget what is older than an hour."""
        if len(self._points) == _MOST:
            self._points.popleft()
            for line in self._lines.values():
                del line[0]
        self._make_room(shares)
        self._points.append(HourPoint(number, at))
        for key in [*self._lines]:
            self._lines[key].append(_written(shares.get(key)))
            if self._lines[key].count(_UNKNOWN) == len(self._points):
                del self._lines[key]

    def since(self, number: int, now: float) -> dict[str, object]:
        """Return the points after a look, line by line, and how many seconds ago each one was."""
        first = next(
            (place for place, point in enumerate(self._points) if point.number > number),
            len(self._points),
        )
        new = {key: line[first:] for key, line in self._lines.items()}
        return {
            "ago": [round(now - point.at, 1) for point in list(self._points)[first:]],
            "lines": {
                key: [None if value == _UNKNOWN else value for value in line]
                for key, line in new.items()
                if line.count(_UNKNOWN) < len(line)
            },
        }

    def _make_room(self, shares: Mapping[str, int | None]) -> None:
        """
        Begin the lines of whoever is known for the first time; those of who is gone make room.
        """
        begun = [key for key, value in shares.items() if value is not None]
        begun = [key for key in begun if key not in self._lines]
        gone = [key for key in self._lines if key not in shares]
        for key in gone[: max(len(self._lines) + len(begun) - MOST_LINES, 0)]:
            del self._lines[key]
        before = array("H", [_UNKNOWN]) * len(self._points)
        for key in begun[: max(MOST_LINES - len(self._lines), 0)]:
            self._lines[key] = before[:]


def _written(share: int | None) -> int:
    return _UNKNOWN if share is None else share
