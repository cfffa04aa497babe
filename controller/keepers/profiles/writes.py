"""
Writing profiles: made with their owner above them, so that they go with it, and their status alone
after that. What people say in a spec is theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.keepers.profiles.figures import ProfileStep
from controller.lease import check_lease
from gpufence import names
from gpufence.need.profile import KIND, profile_name
from kube import ForbiddenError, NotFoundError, core
from kube.kinds import ApiKind
from kube.workloads import read_owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.keepers.profiles.figures import (
        NeedProjection,
        ProfileChange,
        ProfileOwner,
        ProfileProjection,
    )
    from kube import Client, JsonObject
    from kube.discovery import Kinds
    from kube.owners import ApiOwner

PROFILE: Final = ApiKind(names.PROFILE_GROUP, KIND, names.PROFILES)
_KNOWN: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "ReplicationController": "v1",
}
GONE: Final = "gone"
_POD: Final = "Pod"
"""
Its profile stays when it goes: the next pod of that name is another object, and the same model.
"""


class ProfileWrites:
    """`left` tells for how many seconds the Lease is ours. Every method raises KubeError."""

    def __init__(
        self,
        client: Client,
        kinds: Kinds,
        left: Callable[[], float],
        request_seconds: float,
        namespace: str,
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._left = left
        self._seconds = request_seconds
        self._namespace = namespace

    def carry_out(
        self, owner: ProfileOwner, before: ProfileProjection | None, change: ProfileChange
    ) -> str:
        """Do it, and return a word for what became of it."""
        if change.step is ProfileStep.CREATE:
            return self._create(owner, change)
        if before is None:
            raise AssertionError("what is not there is made first")
        if change.step is ProfileStep.DELETE:
            self._delete(_path(owner), before.uid, before.version)
        else:
            self._write_status(owner, before.uid, before.version, change)
        return "done"

    def forget(self, need: NeedProjection) -> None:
        """Delete what a node remembers, as it was read."""
        path = core("namespaces", self._namespace, "configmaps", need.name)
        self._delete(path, need.uid, need.version)

    def _create(self, owner: ProfileOwner, change: ProfileChange) -> str:
        try:
            above = self._above(owner)
        except NotFoundError:
            return GONE  # remembered, and not there any more
        metadata: dict[str, object] = {
            "name": profile_name(owner.kind, owner.name),
            "namespace": owner.namespace,
            "labels": {names.MANAGED_BY: names.CONTROLLER},
        }
        if above is not None:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": above.kind.api_version,
                    "kind": above.kind.kind,
                    "name": above.name,
                    "uid": above.uid,
                }
            ]
        body = {
            "apiVersion": names.PROFILE_GROUP,
            "kind": KIND,
            "metadata": metadata,
            "spec": {"targetRef": {"kind": owner.kind, "name": owner.name}},
        }
        check_lease(self._left, self._seconds)
        try:
            made = self._client.post(
                PROFILE.path(owner.namespace), body, timeout_seconds=self._seconds
            )
        except NotFoundError:
            return GONE  # its namespace goes
        about = made["metadata"]
        self._write_status(owner, about["uid"], about["resourceVersion"], change)
        return "done"

    def _write_status(
        self, owner: ProfileOwner, uid: str, version: str, change: ProfileChange
    ) -> None:
        body: JsonObject = {
            "apiVersion": names.PROFILE_GROUP,
            "kind": KIND,
            "metadata": {
                "name": profile_name(owner.kind, owner.name),
                "namespace": owner.namespace,
                "uid": uid,
                "resourceVersion": version,
            },
            "status": change.status,
        }
        check_lease(self._left, self._seconds)
        self._client.put(f"{_path(owner)}/status", body, timeout_seconds=self._seconds)

    def _delete(self, path: str, uid: str, version: str) -> None:
        check_lease(self._left, self._seconds)
        condition = {"preconditions": {"uid": uid, "resourceVersion": version}}
        self._client.delete(path, condition, timeout_seconds=self._seconds)

    def _above(self, owner: ProfileOwner) -> ApiOwner | None:
        """
        Return the owner as it is now, None where it cannot be told or is not ours to read.

        Raises NotFoundError where it is gone.
        """
        if owner.kind == _POD:
            return None
        kind = self._kind(owner.kind)
        if kind is None:
            return None
        try:
            return read_owner(self._client, kind, owner.namespace, owner.name)
        except ForbiddenError:
            return None

    def _kind(self, word: str) -> ApiKind | None:
        """Find the kind that pods name as their owner's, where there is one of that name only."""
        if word in _KNOWN:
            return self._kinds.find(_KNOWN[word], word)
        found = [kind for kind in self._kinds.all() if kind.kind == word]
        return found[0] if len(found) == 1 else None


def _path(owner: ProfileOwner) -> str:
    return PROFILE.path(owner.namespace, profile_name(owner.kind, owner.name))
