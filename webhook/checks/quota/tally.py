"""What the live pods of each namespace ask for by annotations, from a watch on all pods."""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpufence import names
from gpufence.errors import InvalidError
from gpufence.pods import Pod, read_pod
from gpufence.quota import ENDED, AskedMemory, asked_of
from kube import core
from kube.informers import Store
from kube.replies import part_of, texts_of
from kube.watch import Source
from webhook.checks.quota.reservations import InUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kube import JsonObject
    from kube.informers import Interner
    from webhook.fleet import Fleet
    from webhook.policy import WebhookPolicy

MOST_SEEN: Final = 2**15
_LIVE: Final = ",".join(f"status.phase!={phase}" for phase in ENDED)


class CountedPod(NamedTuple):
    """
    What is kept of a pod: of one whose amount is a share of a card also where it is or may be, to
    tell which card that is.
    """

    namespace: str
    asked: AskedMemory
    ticket: str
    place: Pod | None = None


class Tally:
    """Follows the pods; `seen` are the tickets of those that are there, or were lately."""

    name = "pods"

    def __init__(self, policy: WebhookPolicy) -> None:
        self.store: Store[CountedPod] = Store(self._note)
        self.seen: dict[str, None] = {}
        self._policy = policy
        self._coming: list[str] = []
        self._come: deque[str] = deque(maxlen=MOST_SEEN)
        self._changes = -1
        self._by_namespace: Mapping[str, list[CountedPod]] = {}

    def source(self, interner: Interner) -> Source[tuple[str, CountedPod | None]]:
        """Return what to follow: ended pods are left out, and one that ends counts as deleted."""
        keep = partial(self._keep, interner)
        return Source(path=core("pods"), keep=keep, query={"fieldSelector": _LIVE})

    def counted(self, namespaces: Iterable[str], fleet: Fleet) -> dict[str, InUse]:
        """Return what the pods of some namespaces use; `seen` is of the same moment."""
        if self._changes != self.store.changes:
            self._look()
        return {name: self._sum(self._by_namespace.get(name, ()), fleet) for name in namespaces}

    def amount(self, asked: AskedMemory, pod: Pod, fleet: Fleet) -> int:
        """Return how much a pod asks for on the largest card that it has or may get."""
        if asked.share is None:
            return asked.on(0)
        largest = self._policy.largest_bytes
        cards = fleet.candidates(pod, self._policy.default)
        return asked.on(max(card.memory_bytes or largest for card in cards))

    def _look(self) -> None:
        """
        Take over what the watch has brought: a ticket that came before the pods are looked at
        belongs to one of them, or to one that is gone.
        """
        self._changes = self.store.changes
        come = [self._come.popleft() for _ in range(len(self._come))]
        pods = list(self.store.items.values())
        self._by_namespace = _by_namespace(pods)
        self.seen |= dict.fromkeys([*come, *filter(None, (each.ticket for each in pods))])
        while len(self.seen) > MOST_SEEN:
            self.seen.pop(next(iter(self.seen)))

    def _sum(self, pods: Iterable[CountedPod], fleet: Fleet) -> InUse:
        amounts = [
            each.asked.on(0) if each.place is None else self.amount(each.asked, each.place, fleet)
            for each in pods
        ]
        return InUse(sum(amounts), len(amounts))

    def _keep(self, interner: Interner, item: JsonObject) -> tuple[str, CountedPod | None]:
        metadata = part_of(item, "metadata")
        namespace = interner.value(str(metadata.get("namespace", "")))
        key = f"{namespace}/{metadata.get('name', '')}"
        found = _asked(item)
        if found is None:
            return key, None
        asked, pod = found
        ticket = texts_of(metadata, "annotations").get(names.COUNTED, "")[:64]
        if ticket:
            self._coming.append(ticket)
        place = None if asked.share is None else _place(pod, interner)
        return key, CountedPod(namespace, interner.value(asked), ticket, place)

    def _note(self) -> None:
        """Pass tickets on once their pods are in the store, and not a moment before."""
        self._come.extend(self._coming)
        self._coming.clear()


def _asked(item: JsonObject) -> tuple[AskedMemory, Pod] | None:
    try:
        pod = read_pod(item)
        asked = asked_of(pod)
    except InvalidError:
        return None
    return None if asked is None else (asked, pod)


def _place(pod: Pod, interner: Interner) -> Pod:
    """Return of a pod what tells which cards it may get; those of one owner share it."""
    place: Any = [pod.node_name, dict(pod.node_selector), dict(pod.affinity)]
    slim = Pod({}, (), pod.node_name, dict(pod.node_selector), pod.affinity)
    shared: Pod = interner.same(json.dumps(place, sort_keys=True), slim)
    return shared


def _by_namespace(pods: Iterable[CountedPod]) -> dict[str, list[CountedPod]]:
    found: dict[str, list[CountedPod]] = {}
    for each in pods:
        found.setdefault(each.namespace, []).append(each)
    return found
