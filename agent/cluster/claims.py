"""
The resource claims of this node's pods, read one by one: a node may get those that its pods refer
to, and list none.

What is allocated to a pod that runs does not change, so each claim is read until it is there and
then no more. Nobody waits for it: a pod whose claims are not known yet has no limit, and is said to
have none.
"""

from __future__ import annotations

import logging
import random
import threading
from typing import TYPE_CHECKING, Final

from agent.fence import NO_CLAIMS, ClaimsOfPod
from gpufence import names
from gpufence.devices import MOST_CLAIMS, Reading, with_devices
from gpufence.errors import GpufenceError
from gpufence.pods import read_claims, read_pod
from gpufence.slices import cards_of
from kube import KubeError, NotFoundError, group
from kube.kinds import objects_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent.cluster.settings import ClusterSettings
    from gpufence.cards import Card
    from gpufence.pods import PodClaim
    from gpufence.shape import Object
    from kube import Client, JsonObject

_log = logging.getLogger(__name__)
_GROUP: Final = names.RESOURCE_GROUP
_NONE: Final[Mapping[str, ClaimsOfPod]] = {}


class ClaimReader:
    """
    Reads on a thread of its own whenever a pod with claims has come, and again while any is in
    doubt, in growing pauses. `known` is by the UIDs of pods, and replaced as a whole.
    """

    def __init__(
        self, settings: ClusterSettings, pods: Callable[[], Mapping[str, JsonObject]]
    ) -> None:
        self._settings = settings
        self._pods = pods
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._cards: Mapping[str, Card] = {}
        self._complaint = ""
        self.known: Mapping[str, ClaimsOfPod] = _NONE

    def start(self, client: Client) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(client,), name="claims", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(self._settings.close_seconds)

    def of_pod(self, uid: str) -> ClaimsOfPod:
        """
        Return what is known of one pod's claims.
        """
        return self.known.get(uid, NO_CLAIMS)

    def look(self) -> None:
        """
        Say that pods have changed.
        """
        self._wake.set()

    def _run(self, client: Client) -> None:
        failures = 0
        pods: Mapping[str, JsonObject] | None = None
        while not self._stop.is_set():
            pause = self._settings.backoff.delay_seconds(failures, random.random())  # noqa: S311 (spreads load, guards nothing)
            self._wake.wait(pause if failures else None)
            self._wake.clear()
            if self._stop.is_set():
                return
            before, pods = pods, self._pods()
            doubts = self._round(client, pods)
            failures = failures + 1 if doubts and before is pods else int(doubts)

    def _round(self, client: Client, pods: Mapping[str, JsonObject]) -> bool:
        """
        Read what is not known; return whether anything is in doubt.
        """
        known: dict[str, ClaimsOfPod] = {}
        doubts = False
        for uid, raw in pods.items():
            claims = _claims(raw)
            if not claims or self._stop.is_set():
                continue
            found = self.known.get(uid, NO_CLAIMS)
            if _is_ended(raw):  # its claims are free again, and it holds nothing
                known[uid] = found
                continue
            if found is NO_CLAIMS or _in_doubt(raw, found):
                found = self._read(client, raw, claims)
            known[uid] = found
            doubts = doubts or _in_doubt(raw, found)
        if known.keys() != self.known.keys() or any(
            item is not self.known[uid] for uid, item in known.items()
        ):
            self.known = known
        return doubts

    def _read(self, client: Client, raw: JsonObject, claims: tuple[PodClaim, ...]) -> ClaimsOfPod:
        namespace = str(raw["metadata"].get("namespace", ""))
        found = {ref.name: self._claim(client, namespace, ref) for ref in claims[:MOST_CLAIMS]}
        answer = ClaimsOfPod(found, self._cards)
        if _without_card(raw, answer):
            self._cards = self._slices(client)
            answer = ClaimsOfPod(found, self._cards)
        return answer

    def _claim(self, client: Client, namespace: str, ref: PodClaim) -> Object | str:
        if not ref.claim:
            return "has not become a claim yet"
        try:
            path = group(_GROUP, "namespaces", namespace, "resourceclaims", ref.claim)
            return client.get(path, timeout_seconds=self._settings.request_seconds)
        except NotFoundError:
            return "does not exist"
        except (KubeError, ValueError) as error:
            self._complain(str(error))
            return f"cannot be read: {error}"

    def _slices(self, client: Client) -> Mapping[str, Card]:
        query = {"fieldSelector": f"spec.nodeName={self._settings.node}"}
        path = group(_GROUP, "resourceslices")
        try:
            said = client.get(path, query, timeout_seconds=self._settings.request_seconds)
        except KubeError as error:
            self._complain(str(error))
            return self._cards
        return cards_of(objects_of(said, "items"))

    def _complain(self, why: str) -> None:
        if why != self._complaint:
            _log.warning("the claims of pods cannot be read: %s", why)
        self._complaint = why


def _is_ended(raw: JsonObject) -> bool:
    return (raw.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def _claims(raw: JsonObject) -> tuple[PodClaim, ...]:
    try:
        return read_claims(raw)
    except GpufenceError:
        return ()


def _in_doubt(raw: JsonObject, found: ClaimsOfPod) -> bool:
    """
    Return whether it is worth asking again: something is not there yet, or its card not known.
    """
    return any(isinstance(each, str) for each in found.found.values()) or _without_card(raw, found)


def _without_card(raw: JsonObject, found: ClaimsOfPod) -> bool:
    try:
        uid = str(raw["metadata"].get("uid", ""))
        pod = with_devices(read_pod(raw), found.found, Reading(uid, bound=True, cards=found.cards))
    except GpufenceError:
        return False
    return bool(pod.doubt) or any(device.card is None for device in pod.devices)
