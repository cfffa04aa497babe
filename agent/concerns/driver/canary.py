"""
PURE. Whether this node's canary shows that the driver holds containers, and what the Node is to
say then.

The canary is a container with a small limit (docs/driver-limits.md), which is read back like any
other. Only a pod of our own namespace counts, made by our DaemonSet: no tenant can make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent.concerns.driver.model import AskedLimit, State
from gpufence import names
from gpufence.canary import CanaryNote, Proof

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.concerns.driver.model import LimitFound, Records
    from agent.model.pod import PodOnNode
    from agent.model.use import Observation
    from gpufence.cards import Card

_MADE_BY: Final = ("DaemonSet", names.CANARY)
_AWAY: Final = "no canary runs here"
_NOT_STARTED: Final = "its canary has not started"
_MIG: Final = "it has MIG instances, for which the driver takes no limit"


class Canary(NamedTuple):
    """The canary of a node, if there is one, its driver, and the cards that it is to be held on."""

    pod: PodOnNode | None
    driver: str
    cards: tuple[Card, ...]

    @property
    def container(self) -> str:
        return "" if self.pod is None else next(iter(self.pod.containers), "")


class NodeWord(NamedTuple):
    """What the Node says: the value of the label, None where it has none, and the agent's note."""

    label: str | None = None
    note: CanaryNote | None = None

    @property
    def is_ours(self) -> bool:
        """Return whether the label is there, or missing, by what a canary has shown."""
        passed = self.note is not None and self.note.shown is Proof.PASSED
        return passed and self.label in (None, "true")

    @property
    def lost(self) -> str:
        """Return why what a canary had shown counts no more."""
        return self.note.why if self.note is not None and self.note.shown is Proof.LOST else ""


def canary_on(observation: Observation, namespace: str) -> Canary:
    """Find the canary, of several the latest."""
    found = [
        pod
        for pod in observation.pods.by_uid.values()
        if pod.namespace == namespace
        and pod.controller is not None
        and (pod.controller.kind, pod.controller.name) == _MADE_BY
        and not (pod.ended or pod.terminating)
    ]
    cards = tuple(use.card for use in observation.cards.values())
    pod = max(found, key=lambda each: each.created, default=None)
    return Canary(pod, observation.sample.driver, cards)


def asked_of(canary: Canary) -> Iterator[AskedLimit]:
    """Yield what is to be read back of its container, on each card."""
    if canary.pod is None:
        return
    for identity, name in canary.pod.containers.items():
        limit = canary.pod.driver.get(name)
        if limit is not None and limit.limit_bytes is not None:
            for card in canary.cards:
                amount = limit.limit_bytes
                yield AskedLimit(
                    canary.pod, name, identity, card, amount, amount, 0, None, ours=False
                )


def why_not(canary: Canary, records: Records) -> str | None:
    """
    Return what stands against the driver's limits here, nothing where the canary is held on every
    card; None where that cannot be known at the moment.
    """
    if not canary.driver or not canary.cards:
        return None
    if canary.pod is None:
        return _AWAY
    if any(card.mig for card in canary.cards):
        return _MIG
    refused = [limit.refused for limit in canary.pod.driver.values() if limit.refused]
    if refused:
        return f"its canary cannot start: {refused[0]}"
    asked = list(asked_of(canary))
    if not asked:
        return _NOT_STARTED
    return _absent([records[item.key].found if item.key in records else None for item in asked])


def _absent(found: Iterable[LimitFound | None]) -> str | None:
    states = list(found)
    absent = [each.why for each in states if each is not None and each.state is State.ABSENT]
    if absent:
        return f"of its canary: {absent[0]}"
    held = all(each is not None and each.state is State.HELD for each in states)
    return "" if held else None


def next_note(
    word: NodeWord, canary: Canary, why: str | None, *, lasting: bool
) -> CanaryNote | None:
    """
    Return what the Node is to say from now on, None where that need not change. What stands against
    limits counts once it is `lasting`, another driver at once. A container whose proof was lost
    proves nothing again: another one has to start. What an operator says by the label stays.
    """
    note, driver, container = word.note, canary.driver, canary.container
    if why is None:
        return None
    if note is not None and word.is_ours and note.driver != driver:
        return note._replace(shown=Proof.LOST, why=f"driver {driver} has replaced {note.driver}")
    lost = note is not None and note.shown is Proof.LOST and container in ("", note.container)
    if not why:
        passed = CanaryNote(Proof.PASSED, driver, container)
        free = word.is_ours or word.label is None
        said = note == passed and word.label is not None
        return None if lost or said or not free else passed
    if not lasting or lost:
        return None
    if note is not None and word.is_ours:
        return CanaryNote(Proof.LOST, driver, container or note.container, why)
    failed = CanaryNote(Proof.FAILED, driver, container, why)
    return None if failed == note or (note is None and canary.pod is None) else failed
