"""
The resource claims of this node's pods, read one by one: a node may get those that its pods refer
to, and list none.

What is allocated to a pod that runs does not change, so each claim is read until it is there and
then no more. Nobody waits for it: a pod whose claims are not known yet has no limit, and is said to
have none. What stays in doubt is asked for ever more seldom, and at once when its pod changes.
"""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, Final

from agent.fence import NO_CLAIMS, ClaimsOfPod
from gpufence import names
from gpufence.devices import MOST_READ, Reading, with_devices
from gpufence.errors import GpufenceError
from gpufence.pods import read_pod
from gpufence.slices import cards_of
from gpufence.times import Backoff
from kube import KubeError, NotFoundError, group
from kube.repeating import Complaint, Repeating, SystemClock
from kube.replies import objects_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster.settings import ClusterSettings
    from gpufence.cards import Card
    from gpufence.pods import Pod, PodClaim
    from gpufence.shape import Object
    from kube import Client, JsonObject

_GROUP: Final = names.RESOURCE_GROUP
_NONE: Final[Mapping[str, ClaimsOfPod]] = {}
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_BACKOFF: Final = Backoff(limit_seconds=600.0)


class ClaimReader:
    """
    Reads whenever it is woken since pods have changed, and again while any claim is in doubt, in
    growing pauses. `known` is by the UIDs of pods, and replaced as a whole.
    """

    def __init__(
        self, settings: ClusterSettings, pods: Callable[[], Mapping[str, JsonObject]]
    ) -> None:
        self._settings = settings
        self._pods = pods
        self._client: Client  # from the start on
        self._repeating = Repeating("claims of pods", self._turn, jitter=0.0)
        self._complaint = Complaint("claims of pods", "", SystemClock())
        self._failures = 0
        self._due = math.inf
        self._asked: dict[str, JsonObject] = {}
        self._cards: Mapping[str, Card] = {}
        self.known: Mapping[str, ClaimsOfPod] = _NONE

    def start(self, client: Client) -> None:
        self._client = client
        self._repeating.start()

    def stop(self) -> None:
        self._repeating.stop(self._settings.close_seconds)

    def of_pod(self, uid: str) -> ClaimsOfPod:
        """Return what is known of one pod's claims."""
        return self.known.get(uid, NO_CLAIMS)

    def wake(self) -> None:
        """Say that pods have changed."""
        self._repeating.wake()

    def _turn(self) -> float:
        again = time.monotonic() >= self._due
        asked, doubts = self._round(self._client, self._pods(), again=again)
        if not doubts:
            self._failures, self._due = 0, math.inf
        elif asked:
            self._failures = self._failures + 1 if again else 1
            chance = random.random()  # noqa: S311 (spreads load, guards nothing)
            self._due = time.monotonic() + _BACKOFF.delay_seconds(self._failures, chance)
        return max(self._due - time.monotonic(), 0.0)

    def _round(
        self, client: Client, pods: Mapping[str, JsonObject], *, again: bool
    ) -> tuple[bool, bool]:
        """
        Read what is not known of pods that have come or changed, of all of them where it is time to
        ask again; return whether any of those is in doubt, and whether anything is.
        """
        known: dict[str, ClaimsOfPod] = {}
        asking: dict[str, JsonObject] = {}
        doubtful: set[str] = set()
        for uid, raw in pods.items():
            if not _claims(raw) or self._repeating.stopped:
                continue
            known[uid] = self.known.get(uid, NO_CLAIMS)
            # Of one that has ended the claims are free again, and it holds nothing.
            ended = raw.get("status", {}).get("phase") in _ENDED
            if not ended and (known[uid] is NO_CLAIMS or _in_doubt(raw, known[uid])):
                doubtful.add(uid)
                if again or self._asked.get(uid) is not raw:
                    asking[uid] = raw
        if asking:
            known.update(self._read(client, asking, known))
            doubtful -= {uid for uid, raw in asking.items() if not _in_doubt(raw, known[uid])}
        self._asked = {uid: pods[uid] for uid in doubtful}
        if known.keys() != self.known.keys() or any(
            item is not self.known[uid] for uid, item in known.items()
        ):
            self.known = known
        return not doubtful.isdisjoint(asking), bool(doubtful)

    def _read(
        self,
        client: Client,
        pods: Mapping[str, JsonObject],
        known: Mapping[str, ClaimsOfPod],
    ) -> dict[str, ClaimsOfPod]:
        """
        Ask for the claims that are not allocated, as far as is known, and once for the cards where
        any of them is not known.
        """
        found = {uid: self._found(client, raw, known[uid]) for uid, raw in pods.items()}
        answers = {uid: ClaimsOfPod(each, self._cards) for uid, each in found.items()}
        without = [uid for uid, raw in pods.items() if _without_card(raw, answers[uid])]
        if without:
            self._cards = self._slices(client)
            answers |= {uid: ClaimsOfPod(found[uid], self._cards) for uid in without}
        return answers

    def _found(
        self, client: Client, raw: JsonObject, known: ClaimsOfPod
    ) -> Mapping[str, Object | str]:
        if known is not NO_CLAIMS and not _devices(raw, known).doubt:
            return known.found  # all that is missing is a card
        namespace = str(raw["metadata"].get("namespace", ""))
        return {ref.name: self._claim(client, namespace, ref) for ref in _claims(raw)[:MOST_READ]}

    def _claim(self, client: Client, namespace: str, ref: PodClaim) -> Object | str:
        if not ref.claim:
            return "has not become a claim yet"
        try:
            path = group(_GROUP, "namespaces", namespace, "resourceclaims", ref.claim)
            return client.get(path, timeout_seconds=self._settings.request_seconds)
        except NotFoundError:
            return "does not exist"
        except (KubeError, ValueError) as error:
            self._complaint.say(error)
            return f"cannot be read: {error}"

    def _slices(self, client: Client) -> Mapping[str, Card]:
        query = {"fieldSelector": f"spec.nodeName={self._settings.node}"}
        path = group(_GROUP, "resourceslices")
        try:
            said = client.get(path, query, timeout_seconds=self._settings.request_seconds)
        except KubeError as error:
            self._complaint.say(error)
            return self._cards
        return cards_of(objects_of(said, "items"))


def _claims(raw: JsonObject) -> tuple[PodClaim, ...]:
    try:
        return read_pod(raw).claims
    except GpufenceError:
        return ()


def _in_doubt(raw: JsonObject, found: ClaimsOfPod) -> bool:
    """
    Return whether it is worth asking again: something is not there yet, or its card not known.
    """
    return bool(_devices(raw, found).doubt) or _without_card(raw, found)


def _without_card(raw: JsonObject, found: ClaimsOfPod) -> bool:
    return any(device.card is None for device in _devices(raw, found).devices)


def _devices(raw: JsonObject, found: ClaimsOfPod) -> Pod:
    uid = str(raw["metadata"].get("uid", ""))
    return with_devices(read_pod(raw), found.found, Reading(uid, bound=True, cards=found.cards))
