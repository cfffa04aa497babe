"""
Finding owners of pods, and acts on them that hold only as long as nobody else has changed them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.times import write_moment
from kube.client import PatchType
from kube.errors import BadReplyError
from kube.owners import WORKLOAD, is_notebook, number_of, owner_of
from kube.replies import part_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube.client import Client
    from kube.discovery import Kinds
    from kube.kinds import ApiKind
    from kube.owners import ApiOwner
    from kube.replies import JsonObject

_MOST_STEPS = 8
_MOST_WORKLOADS = 500


class Scale(NamedTuple):
    """The scale subresource of an owner."""

    version: str
    wanted: int
    there: int


def read_owner(client: Client, kind: ApiKind, namespace: str, name: str) -> ApiOwner:
    """Read one owner as it is now. Raises KubeError."""
    return owner_of(kind, client.get(kind.path(namespace, name)))


def find_owner(client: Client, kinds: Kinds, owner: ApiOwner) -> ApiOwner:
    """
    Climb from an object, a pod too, to who owns it in the end: who is above it, and what Kueue
    admits it by where it can neither be scaled nor stopped itself.

    Who is gone, replaced, or of a kind nobody knows, ends the way at the one below. Raises
    KubeError where somebody on the way cannot be read.
    """
    for _ in range(_MOST_STEPS):
        above = owner.controller
        kind = above and kinds.find(above.api_version, above.kind)
        if above is None or kind is None:
            break
        found = read_owner(client, kind, owner.namespace, above.name)
        if found.uid != above.uid:
            break
        owner = found
    if owner.stoppable or owner.kind.scalable:
        return owner
    return _admitting(client, kinds, owner) or owner


def _admitting(client: Client, kinds: Kinds, owner: ApiOwner) -> ApiOwner | None:
    """Return the Workload by which Kueue admits an owner."""
    group, name = WORKLOAD
    kind = kinds.find(f"{group}/", name)
    if kind is None:
        return None
    listed = client.page(
        kind.path(owner.namespace), lambda item: owner_of(kind, item), {"limit": _MOST_WORKLOADS}
    )
    return next(
        (item for item in listed.items if item.controller and item.controller.uid == owner.uid),
        None,
    )


def set_replicas(client: Client, owner: ApiOwner, replicas: int) -> ApiOwner:
    """
    Scale an owner that is still as it was read, and return it as it is now.

    Raises ConflictError where it has changed, or is another by now, and KubeError otherwise.
    """
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": owner.name, "namespace": owner.namespace, **_precondition(owner)},
        "spec": {"replicas": replicas},
    }
    scale = _scale(f"PUT {owner.path}/scale", client.put(f"{owner.path}/scale", body))
    return owner._replace(version=scale.version, replicas=scale.wanted)


def annotate(client: Client, owner: ApiOwner, texts: Mapping[str, str | None]) -> ApiOwner:
    """
    Write annotations, or take away those that are None, of an owner that is still as it was read.

    Raises as `set_replicas`.
    """
    return _patched(client, owner, {"metadata": {"annotations": dict(texts)}})


def write_note(client: Client, owner: ApiOwner, note: str | None) -> ApiOwner:
    """Write down what an owner was; None takes the note away. Raises as `set_replicas`."""
    return annotate(client, owner, {names.RELEASED: note})


def bring_to(client: Client, owner: ApiOwner, replicas: int) -> ApiOwner:
    """
    Have an owner run so many replicas; what has none that are counted is stopped as a whole, or
    started again. Raises as `set_replicas`.
    """
    if not owner.stoppable:
        return set_replicas(client, owner, replicas)
    if is_notebook(owner.kind):
        stopped = None if replicas else write_moment(time.time())
        return annotate(client, owner, {names.STOPPED: stopped})
    return _patched(client, owner, {"spec": {"active": replicas > 0}})


def _patched(client: Client, owner: ApiOwner, change: JsonObject) -> ApiOwner:
    metadata = {**part_of(change, "metadata"), **_precondition(owner)}
    patch = {**change, "metadata": metadata}
    return owner_of(owner.kind, client.patch(owner.path, patch, PatchType.MERGE))


def _precondition(owner: ApiOwner) -> JsonObject:
    return {"uid": owner.uid, "resourceVersion": owner.version}


def _scale(request: str, said: JsonObject) -> Scale:
    metadata, spec, status = (part_of(said, key) for key in ("metadata", "spec", "status"))
    version = metadata.get("resourceVersion")
    # Go leaves zeros out.
    wanted, there = (number_of(part.get("replicas", 0)) for part in (spec, status))
    if said.get("kind") != "Scale" or not isinstance(version, str) or wanted is None:
        raise BadReplyError(f"{request}: the answer is no Scale")
    return Scale(version, wanted, there or 0)
