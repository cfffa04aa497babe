"""
Who asks: the API server is asked whose token it is, and whether that one may read the scale of the
owner.
"""

from __future__ import annotations

import threading
import time
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from kube import group
from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.model import OwnerKey
    from kube import Client
    from kube.kinds import ApiKind

REMEMBERED_SECONDS: Final = 60.0
MOST_REMEMBERED: Final = 1024
_BEARER: Final = "bearer "


class CallerAnswer(NamedTuple):
    """
    Whether somebody may ask: `known` where the token is good, `allowed` where he has the right.
    """

    known: bool
    allowed: bool
    why: str = ""


class Callers:
    """Remembers each answer for a minute. Of tokens only digests are kept."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[tuple[bytes, OwnerKey], tuple[float, CallerAnswer]] = {}

    def ask(self, authorization: str, key: OwnerKey, kind: ApiKind | None) -> CallerAnswer:
        """Return whether whoever sent this header may know of an owner. Raises KubeError."""
        if authorization[: len(_BEARER)].lower() != _BEARER:
            return CallerAnswer(known=False, allowed=False, why="there is no bearer token")
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

    def _review(self, token: str, key: OwnerKey, kind: ApiKind | None) -> CallerAnswer:
        path = group("authentication.k8s.io/v1", "tokenreviews")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        review = self._client.post(path, {**body, "spec": {"token": token}})
        said = part_of(review, "status")
        user = said.get("user")
        if said.get("authenticated") is not True or not isinstance(user, dict):
            return CallerAnswer(known=False, allowed=False, why="nobody knows this token")
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
        return CallerAnswer(known=True, allowed=allowed, why=why)
