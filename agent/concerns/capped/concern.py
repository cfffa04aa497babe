"""Containers that ended at their cap, said by their pods and by what makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from agent.concern import Concern
from agent.concerns.capped.model import CappedMemory, CappedPolicy, looked, new_ends
from agent.events.episodes import pod_notices
from agent.model.state import PodRows
from gpufence import names
from gpufence.capped import what_happened, what_helps
from gpufence.event_text import Anchor, event_text, explain_command, shortened
from gpufence.snapshot import EndedRow
from gpufence.text import mebibytes
from gpufence.times import read_moment
from service.exposition import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent.concern import Ground
    from agent.concerns.capped.model import CappedEnd
    from agent.events.episodes import Notice
    from agent.model.state import TickResult
    from agent.model.use import Observation

_CAPPED: Final = "gpufence_pod_capped_total"


class CappedConcern(Concern):
    """Says each end once; those of a crash loop count in one Event."""

    name = "capped"
    title = "Ends at the cap"
    settings = CappedPolicy

    def __init__(self, timestamp: Callable[[], str]) -> None:
        self._timestamp = timestamp
        self._before: Observation | None = None
        self._news: tuple[Notice, ...] = ()
        self.memory = CappedMemory()

    @classmethod
    def on(cls, ground: Ground, settings: CappedPolicy) -> Self:
        del settings
        return cls(ground.timestamp)

    def look(self, tick: TickResult) -> None:
        before, self._before = self._before, tick.observation
        past, self.memory = self.memory, looked(self.memory, tick.observation, before)
        if self.memory.ends is past.ends:
            return
        fresh = new_ends(self.memory, past, self._now)
        self._news += tuple(item for end in fresh for item in _notices(end))

    def notices(self) -> Sequence[Notice]:
        news, self._news = self._news, ()
        return news

    def families(self, last: TickResult | None, now: float) -> Sequence[Family]:
        del last, now
        ends = [end for _, end in sorted(self.memory.ends.items()) if end.is_said]
        samples = [
            (
                {
                    "namespace": end.pod.namespace,
                    "pod": end.pod.name,
                    "container": end.found.ending.container,
                },
                float(end.times),
            )
            for end in ends
        ]
        text = "Times a container ended at the cap it was given, as far as its pod's status says"
        return [Family(_CAPPED, "counter", text, tuple(samples))]

    def rows(self, now: float, *, current: bool) -> Mapping[str, PodRows]:
        del now, current
        ended: dict[str, list[EndedRow]] = {}
        for end in self._lasting(self._now) if self.memory.ends else ():
            ended.setdefault(end.pod.uid, []).append(_row(end))
        return {uid: PodRows({"ended": tuple(rows)}) for uid, rows in ended.items()}

    @property
    def _now(self) -> float:
        return read_moment(self._timestamp(), "now")

    def _lasting(self, now: float) -> list[CappedEnd]:
        return [end for end in self.memory.ends.values() if end.lasts(now)]


def _row(end: CappedEnd) -> EndedRow:
    found, given = end.found, end.found.given
    return EndedRow(
        container=found.ending.container,
        at=found.ending.at,
        reason=str(found.why),
        certain=found.certain,
        asked_bytes=None if given is None else given.asked_bytes,
        given_bytes=None if given is None else given.given_bytes,
        peak_bytes=found.peak_bytes or None,
        restarts=found.ending.restarts,
    )


def _notices(end: CappedEnd) -> tuple[Notice, ...]:
    ending = end.found.ending
    often = f", {ending.restarts} restarts" if ending.restarts > 1 else ""
    peak = end.found.peak_bytes if end.found.certain else 0  # else the first sentence has it
    held = f", held up to {mebibytes(peak, unit='Mi')}" if peak else ""
    enough, *more = what_helps(end.found)
    which = f"{shortened(ending.container)}: exit code {ending.code}{often}{held}."
    last = explain_command(end.pod.name)
    text = event_text(what_happened(end.found), enough, which, *more, last=last)
    return pod_notices(
        names.CAP_REACHED,
        end.pod,
        text,
        topic=ending.container,
        anchor=Anchor.CAPPED,
        owner_too=True,
    )
