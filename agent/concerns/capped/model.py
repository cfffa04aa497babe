"""
PURE. Which containers failed for want of GPU memory, by their words and the most that they held.

What is kept is bounded by what is there: containers with a cap that hold memory, and those that
have failed, of pods that the API server knows on this node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gpufence.capped import Capped, Why, capped
from gpufence.errors import InvalidError
from gpufence.times import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.model.pod import ContainerFailure, PodOnNode
    from agent.model.use import Observation, ProcessUse

ContainerKey: TypeAlias = tuple[str, str]
"""A container by its pod's UID and its name."""

RECENT_SECONDS: Final = 600.0
"""A kubelet takes a container that has run for so long for one that does not crash."""
_NO_PEAKS: Final[Mapping[int, int]] = {}
OF_CAP: Final = frozenset({Why.CAPPED, Why.TOO_SMALL})
"""What the cap is why of."""


@dataclass(frozen=True, slots=True)
class CappedPolicy:
    """There is nothing to be set."""


class CappedEnd(NamedTuple):
    """The last end of a container, and how many there were since the agent knows it."""

    pod: PodOnNode
    found: Capped
    times: int

    @property
    def is_said(self) -> bool:
        """Return whether it is worth an Event: not where its last words are of something else."""
        return self.found.why in OF_CAP and (self.found.certain or self.found.ending.silent)

    def lasts(self, now: float) -> bool:
        """Return whether that is how the container stands: it has not run well since."""
        ending = self.found.ending
        return bool(ending.waiting) or self.pod.ended or _age(ending.at, now) < RECENT_SECONDS


@dataclass(frozen=True, slots=True)
class CappedMemory:
    """`peaks` is the most that one process of a container has held on a card since it started."""

    ends: Mapping[ContainerKey, CappedEnd] = field(default_factory=dict)
    peaks: Mapping[ContainerKey, int] = field(default_factory=dict)


def looked(memory: CappedMemory, seen: Observation, before: Observation | None) -> CappedMemory:
    """Take in one look at the node; without a change there is nothing new in it."""
    peaks = memory.peaks if seen.shows_what(before) else _peaks(memory.peaks, seen, before)
    if before is not None and seen.pods is before.pods:
        return CappedMemory(memory.ends, peaks)
    left = {key: peak for key, peak in peaks.items() if key[0] in seen.pods.by_uid}
    ends: dict[ContainerKey, CappedEnd] = {}
    for pod in seen.pods.by_uid.values():
        for failure in pod.failures if pod.mode is not None else ():
            key = pod.uid, failure.ending.container
            end = _end(memory.ends.get(key), pod, failure, left)
            if end is not None:
                ends[key] = end
    return CappedMemory(ends, left)


def new_ends(memory: CappedMemory, before: CappedMemory, now: float) -> Iterator[CappedEnd]:
    """Yield the ends at a cap that are new, and not of long before the agent started."""
    for key, end in memory.ends.items():
        past = before.ends.get(key)
        new = past is None or past.times != end.times
        if new and end.is_said and _age(end.found.ending.at, now) < RECENT_SECONDS:
            yield end


def _end(
    past: CappedEnd | None,
    pod: PodOnNode,
    failure: ContainerFailure,
    peaks: dict[ContainerKey, int],
) -> CappedEnd | None:
    """Judge an end once, with what was held before it; another life of the container begins."""
    ending = failure.ending
    if past is not None and past.found.ending.at == ending.at:
        return CappedEnd(pod, past.found._replace(ending=ending), past.times)
    found = capped(ending, failure.given, peaks.pop((pod.uid, ending.container), 0))
    if found is None or (pod.terminating and not found.certain):
        return None
    return CappedEnd(pod, found, 1 if past is None else past.times + 1)


def _peaks(
    known: Mapping[ContainerKey, int], seen: Observation, before: Observation | None
) -> dict[ContainerKey, int]:
    """Return the most of each container, of ended processes by the driver's own figures."""
    peaks = dict(known)
    driver = {item.card.uuid: item.peaks for item in seen.sample.cards}
    for look in (seen,) if before is None else (before, seen):
        for uuid, item in _of_capped(look):
            used = (item.used_bytes or 0) if look is seen else 0
            most = max(used, driver.get(uuid, _NO_PEAKS).get(item.pid, 0))
            key = item.pod_uid, item.container
            peaks[key] = max(peaks.get(key, 0), most)
    return {key: peak for key, peak in peaks.items() if peak}


def _of_capped(look: Observation) -> Iterator[tuple[str, ProcessUse]]:
    """Yield the processes, with their cards, of which it is certain that a cap is theirs."""
    for uuid, card in look.cards.items():
        for item in card.processes:
            pod = look.pods.by_uid.get(item.pod_uid) if item.confirmed else None
            if pod is not None and (item.container in pod.caps or item.container in pod.driver):
                yield uuid, item


def _age(at: str, now: float) -> float:
    """Return how long ago something was; what has no date was now."""
    try:
        return now - read_moment(at, "finishedAt")
    except InvalidError:
        return 0.0
