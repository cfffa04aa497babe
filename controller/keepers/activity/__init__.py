"""
The pages that say how busy an owner is, and how many more of its pods would fit; and who may ask:
the API server is asked whose token it is, and whether that one may read the scale of the owner.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from controller.decide import Places, nodes_of
from controller.keepers import Keeper, Shelf
from controller.keepers.activity.busyness import UnknownActivity, activity_of, next_replica
from controller.model import OwnerKey
from gpufence import names
from gpufence.setting_kinds import choice
from gpufence.settings import setting
from kube import KubeError, group
from kube.replies import part_of
from service.status_server import JSON, StatusReply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.keepers import Core
    from controller.model import ClusterState, OwnerState
    from kube import Client
    from kube.kinds import ApiKind
    from service.status_server import PageQuestion


REMEMBERED_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 1024
_BEARER: Final = "bearer "
_PARTS: Final = 3
_NOT_FENCED: Final = (
    f"label the namespace {names.MODE} or {names.IDLE}, and name it as "
    "NAMESPACE/KIND/NAME, such as vision/deployments/worker"
)


class ActivityPages(Keeper):
    """
    Answers `NAMESPACE/KIND/NAME`; whatever is not known is an error, never a number.

    Only who may read an owner's scale is told how busy it is; without
    `users` everybody is. How many more would fit is `room`,
    which everybody may know who sees `/v1/owners`: no header of a person's comes through the API
    server's proxy.
    """

    def __init__(self, core: Core, users: ApiUsers | None) -> None:
        self._core = core
        self._users = users
        self._known: Places | None = None

    @property
    def folders(self) -> dict[str, Callable[[PageQuestion], StatusReply]]:
        return {"/v1/activity/": self.activity, "/v1/room/": self.room}

    def activity(self, question: PageQuestion) -> StatusReply:
        return self._reply(question, guarded=True)

    def room(self, question: PageQuestion) -> StatusReply:
        return self._reply(question, guarded=False)

    def _reply(self, question: PageQuestion, *, guarded: bool) -> StatusReply:
        parts = [unquote(part) for part in question.path.split("/")]
        if len(parts) != _PARTS:
            return _error(HTTPStatus.NOT_FOUND, _NOT_FENCED)
        trust = self._core.cluster.trust()
        last = self._core.last()
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
                kind = self._core.cluster.kinds.find(key.api_version, key.kind)
                called = {key.kind.lower()} if kind is None else kind.called
                if word.lower().partition(".")[0] in called:
                    return owner, kind
        return OwnerKey(namespace, "apps/v1", word, name), None

    def _refusal(
        self, question: PageQuestion, owner: OwnerState | OwnerKey, kind: ApiKind | None
    ) -> StatusReply | None:
        if self._users is None:
            return None
        key = owner if isinstance(owner, OwnerKey) else owner.key
        answer = self._users.ask(question.authorization, key, kind)
        if not answer.known:
            return _error(HTTPStatus.UNAUTHORIZED, answer.why)
        return None if answer.allowed else _error(HTTPStatus.FORBIDDEN, answer.why)

    def _busy(self, owner: OwnerState, state: ClusterState) -> StatusReply:
        if owner.unsure:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, owner.unsure)
        found = activity_of(owner, self._core.agents.snapshots(nodes_of(owner)))
        if isinstance(found, UnknownActivity):
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, found.why)
        busy = {"busyReplicas": found.busy_replicas, "idleSeconds": found.idle_seconds}
        return self._room(owner, state, **busy)

    def _room(self, owner: OwnerState, state: ClusterState, **more: float | None) -> StatusReply:
        """Answer how many there are, and how many more would fit."""
        pods = next_replica(owner)
        if not pods:
            why = "what its pods will ask for is unknown"
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


class UserAnswer(NamedTuple):
    """
    Whether a user may ask: `known` where the token is good, `allowed` where it gives the right.
    """

    known: bool
    allowed: bool
    why: str = ""


class ApiUsers:
    """Remembers each answer for a minute. Of tokens only digests are kept."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[tuple[bytes, OwnerKey], tuple[float, UserAnswer]] = {}

    def ask(self, authorization: str, key: OwnerKey, kind: ApiKind | None) -> UserAnswer:
        """Return whether the user of this header may know of an owner. Raises KubeError."""
        if authorization[: len(_BEARER)].lower() != _BEARER:
            return UserAnswer(known=False, allowed=False, why="there is no bearer token")
        token = authorization[len(_BEARER) :].strip()
        mark = sha256(token.encode()).digest(), key
        now = self._clock()
        with self._lock:
            known = self._answers.get(mark)
        if known is not None and now - known[0] < REMEMBERED_SECONDS:
            return known[1]
        answer = self._review(token, key, kind)
        with self._lock:
            if len(self._answers) >= MOST_REMEMBERED:
                self._answers.clear()
            self._answers[mark] = now, answer
        return answer

    def _review(self, token: str, key: OwnerKey, kind: ApiKind | None) -> UserAnswer:
        path = group("authentication.k8s.io/v1", "tokenreviews")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        review = self._client.post(path, {**body, "spec": {"token": token}})
        said = part_of(review, "status")
        user = said.get("user")
        if said.get("authenticated") is not True or not isinstance(user, dict):
            return UserAnswer(known=False, allowed=False, why="this token is unknown")
        plural = f"{key.kind.lower().removesuffix('s')}s" if kind is None else kind.plural
        asked = {
            "user": user.get("username"),
            "uid": user.get("uid"),
            "groups": user.get("groups"),
            "extra": user.get("extra"),
            "resourceAttributes": {
                "namespace": key.namespace,
                "verb": "get",
                "group": key.api_version.rpartition("/")[0],
                "resource": plural,
                "subresource": "scale",
                "name": key.name,
            },
        }
        access = group("authorization.k8s.io/v1", "subjectaccessreviews")
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        review = self._client.post(access, {**body, "spec": asked})
        allowed = part_of(review, "status").get("allowed") is True
        why = (
            ""
            if allowed
            else (
                f"{user.get('username')} may not get {plural}/scale in namespace {key.namespace}; "
                "a Role and its RoleBinding allow it"
            )
        )
        return UserAnswer(known=True, allowed=allowed, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySettings:
    """Who is answered."""

    auth: str = field(
        default="token",
        metadata=setting(
            "GPUFENCE_ACTIVITY_AUTH",
            "access to `/v1/activity/`: `token` (for tokens that may get the owner's `scale`), "
            "or `none` (no authentication)",
            kind=choice(("token", "none")),
        ),
    )


def _build(core: Core, settings: ActivitySettings) -> ActivityPages:
    return ActivityPages(core, None if settings.auth == "none" else ApiUsers(core.client))


ACTIVITY: Final = Shelf("activity", "", ActivitySettings, _build)
