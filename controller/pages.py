"""What the controller shows: how each owner stands, and how busy one is, for whoever scales it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from controller.activity import UnknownActivity, activity_of, next_replica, nodes_of
from controller.decide import Places
from controller.model import OwnerKey, Step
from gpufence import names
from gpufence.releases import OwnerRelease, OwnerReleases, write_owners
from kube import KubeError
from service.status_server import JSON, StatusReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controller.callers import Callers
    from controller.cluster.cluster import WatchTrust
    from controller.loop import LastPass
    from controller.model import ClusterState, OwnerState
    from gpufence.snapshot import Snapshot
    from kube.kinds import ApiKind
    from service.status_server import PageQuestion

_PARTS: Final = 3
_NOT_FENCED: Final = (
    f"label the namespace {names.MODE} or {names.IDLE}, and name it as "
    "NAMESPACE/KIND/NAME, such as vision/deployments/worker"
)


class ActivitySources(NamedTuple):
    """What an answer is made of; without `callers` everybody may ask."""

    last: Callable[[], LastPass | None]
    trust: Callable[[], WatchTrust]
    kind: Callable[[str, str], ApiKind | None]
    snapshots: Callable[[Iterable[str]], Mapping[str, Snapshot | None]]
    callers: Callers | None


def owners_page(last: LastPass | None, trust: WatchTrust, now: float) -> str:
    """Write how each owner stands."""
    if last is None:
        brake = trust.trouble or "nothing is known yet"
        return write_owners(OwnerReleases(leader=False, at=now, brake=brake))
    owners = sorted(last.state.owners.items(), key=lambda pair: pair[0])
    return write_owners(
        OwnerReleases(
            leader=last.leads,
            at=last.state.now,
            brake=last.decision.brake,
            owners=tuple(_row(owner, last) for _, owner in owners),
        )
    )


def _row(owner: OwnerState, last: LastPass) -> OwnerRelease:
    standing = last.decision.standings.get(owner.key)
    row = OwnerRelease(
        *owner.key,
        way=str(owner.way),
        state="unknown",
        step=str(Step.NOTHING),
        why=owner.why_not,
        replicas=owner.replicas,
        rung="" if owner.rung is None else str(owner.rung),
        pods=len(owner.pods),
        note=owner.note,
    )
    if standing is None:
        return row
    return row._replace(
        state=standing.state,
        step=str(standing.step),
        why=standing.why,
        idle_since=standing.idle_since,
        deadline=standing.deadline,
        contended=standing.contended,
        waiters=standing.waiters,
    )


class ActivityPage:
    """
    Answers `NAMESPACE/KIND/NAME`; whatever is not known is an error, never a number.

    Only who may read an owner's scale is told how busy it is. How many more would fit is `room`,
    which everybody may know who sees `/v1/owners`: no header of a person's comes through the API
    server's proxy.
    """

    def __init__(self, sources: ActivitySources) -> None:
        self._sources = sources
        self._known: Places | None = None

    def __call__(self, question: PageQuestion) -> StatusReply:
        return self._reply(question, guarded=True)

    def room(self, question: PageQuestion) -> StatusReply:
        return self._reply(question, guarded=False)

    def _reply(self, question: PageQuestion, *, guarded: bool) -> StatusReply:
        parts = [unquote(part) for part in question.path.split("/")]
        if len(parts) != _PARTS:
            return _error(HTTPStatus.NOT_FOUND, _NOT_FENCED)
        trust = self._sources.trust()
        last = self._sources.last()
        try:
            if last is None or not trust.fresh or not last.state.fresh:
                why = trust.trouble or "what is known of the cluster is too old"
                return _error(HTTPStatus.SERVICE_UNAVAILABLE, why)
            owner, kind = self._find(last.state, *parts)
            refusal = self._refusal(question, owner, kind) if guarded else None
        except KubeError as error:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        if refusal is not None:
            return refusal
        if isinstance(owner, OwnerKey):
            asked = "/".join(parts)
            why = f"{asked} owns no GPU pods in a fenced namespace; {_NOT_FENCED}"
            return _error(HTTPStatus.NOT_FOUND, why)
        return self._busy(owner, last.state) if guarded else self._room(owner, last.state)

    def _find(
        self, state: ClusterState, namespace: str, word: str, name: str
    ) -> tuple[OwnerState | OwnerKey, ApiKind | None]:
        """
        Find the owner that is meant by its kind in any of its names; where there is none, what it
        would be called.
        """
        for key, owner in state.owners.items():
            if key.namespace == namespace and key.name == name:
                kind = self._sources.kind(key.api_version, key.kind)
                called = {key.kind.lower()} if kind is None else kind.called
                if word.lower().partition(".")[0] in called:
                    return owner, kind
        return OwnerKey(namespace, "apps/v1", word, name), None

    def _refusal(
        self, question: PageQuestion, owner: OwnerState | OwnerKey, kind: ApiKind | None
    ) -> StatusReply | None:
        callers = self._sources.callers
        if callers is None:
            return None
        key = owner if isinstance(owner, OwnerKey) else owner.key
        answer = callers.ask(question.authorization, key, kind)
        if not answer.known:
            return _error(HTTPStatus.UNAUTHORIZED, answer.why)
        return None if answer.allowed else _error(HTTPStatus.FORBIDDEN, answer.why)

    def _busy(self, owner: OwnerState, state: ClusterState) -> StatusReply:
        if owner.unsure:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, owner.unsure)
        found = activity_of(owner, self._sources.snapshots(nodes_of(owner)))
        if isinstance(found, UnknownActivity):
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, found.why)
        busy = {"busyReplicas": found.busy_replicas, "idleSeconds": found.idle_seconds}
        return self._room(owner, state, **busy)

    def _room(self, owner: OwnerState, state: ClusterState, **more: float | None) -> StatusReply:
        """Answer how many there are, and how many more would fit."""
        pods = next_replica(owner)
        if not pods:
            why = "nobody knows what its pods will ask for"
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, why)
        places = self._places(state)
        # Those that follow a leader are alike.
        room = min(places.room(pods[0]), places.room(pods[-1])) // len(pods)
        return _json(HTTPStatus.OK, {**more, "room": room, "replicas": owner.replicas})

    def _places(self, state: ClusterState) -> Places:
        """Add up what nodes have left once for all who ask between two passes."""
        known = self._known
        if known is None or known.world is not state:
            self._known = known = Places(state)
        return known


def _error(status: HTTPStatus, why: str) -> StatusReply:
    return _json(status, {"error": why})


def _json(status: HTTPStatus, content: Mapping[str, Any]) -> StatusReply:
    return StatusReply(status, json.dumps(content).encode() + b"\n", JSON)
