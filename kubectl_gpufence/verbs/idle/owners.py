"""
Owners of GPU pods: what agents and the controller say of them, those that a person names, and
changes to them that hold only as long as nobody else interferes.

GpufenceError
└── RefusedError     it can be done, and is not, for a reason that is said: a person decides
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError, InvalidError
from gpufence.idle import read_owners, write_note
from gpufence.names import RELEASED
from gpufence.shape import as_object, objects
from gpufence.snapshot import POD_ROWS
from kube import ConflictError, core, workloads
from kube.owners import ApiOwner, owner_of
from kube.workloads import read_owner
from kubectl_gpufence.agents import silence_reason
from kubectl_gpufence.owners import PODS, find_named, topmost_owners
from kubectl_gpufence.pods import see_pod
from kubectl_gpufence.reader import LIVING, NO_CONTROLLER, AddressError
from kubectl_gpufence.verbs.idle.lines import OwnedPod, SeenOwners

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpufence.idle import OwnerReleases, ReleaseNote
    from gpufence.shape import Object
    from kube import Client, JsonObject
    from kube.discovery import Kinds
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.reader import ClusterReader


_TRIES: Final = 5


class RefusedError(GpufenceError):
    """
    Raised for what speaks against an act; the message names the way around it, where there is one.
    """


def named_owner(client: Client, kinds: Kinds, namespace: str, word: str) -> ApiOwner:
    """
    Find whom somebody means by KIND/NAME, or by the name of a pod, and who owns that in the end.

    Raises:
        MissingError: there is no such object.
        RefusedError: nobody can change how many replicas it has.
    """
    owner = find_named(client, kinds, namespace, word)
    if owner.scalable or owner.stoppable:
        return owner
    raise RefusedError(
        f"{owner.shown} has no replicas that could be changed: nobody releases it, "
        "and nothing needs to keep or wake it"
    )


def carefully(client: Client, owner: ApiOwner, change: Callable[[ApiOwner], ApiOwner]) -> ApiOwner:
    """
    Change an owner; where it has been written to since it was read, as its own controller does all
    the time, once more if it still wants what it wanted.

    Raises:
        RefusedError: somebody else changed what it wants, or its note.
        KubeError: it cannot be changed.
    """
    for _ in range(_TRIES):
        try:
            return change(owner)
        except ConflictError:
            now = read_owner(client, owner.kind, owner.namespace, owner.name)
            if _wants(now) != _wants(owner):
                break
            owner = now
    raise RefusedError(f"somebody else changes {owner.shown} at this moment; look, and try again")


def note_on(client: Client, owner: ApiOwner, note: ReleaseNote) -> ApiOwner:
    """Write the note of a release on an owner."""
    text = write_note(note)
    return carefully(client, owner, lambda item: workloads.write_note(client, item, text))


def _wants(owner: ApiOwner) -> tuple[str, int | None, bool, str | None]:
    return owner.uid, owner.replicas, owner.active, owner.annotations.get(RELEASED)


_PAGE: Final = "/v1/owners"
_UNSCHEDULABLE: Final = "Unschedulable"


def gather(reader: ClusterReader, namespace: str) -> SeenOwners:
    """Ask about the GPU pods of a namespace, or of all."""
    pods, notes = _pods(reader, namespace)
    tops, note = topmost_owners(reader, [item for _, item, _ in pods])
    snapshots, silent = reader.snapshots({seen.node for seen, _, _ in pods}, POD_ROWS)
    releases, missing = read_releases(reader)
    owned = tuple(OwnedPod(seen, tops[item.uid], waits) for seen, item, waits in pods)
    brake = f"no owner is released: {releases.brake}" if releases and releases.brake else ""
    said = (*notes, note, *silent, missing, brake)
    return SeenOwners(owned, snapshots, releases, tuple(filter(None, said)))


def read_releases(reader: ClusterReader) -> tuple[OwnerReleases | None, str]:
    """
    Ask the controller, the replica that leads where there are several; or say why it says nothing.
    """
    pages, missing = reader.controller_pages(_PAGE)
    if not pages:
        measured = ", and the agents' measurements are shown" if missing == NO_CONTROLLER else ""
        return None, f"{missing}{measured}"
    answers = [_read(reader, each) for each in pages]
    found = [item for item in answers if not isinstance(item, str)]
    if not found:
        return None, f"the controller says nothing: {answers[0]}"
    best = max(found, key=lambda item: (item.leader, item.at))
    return best, "" if best.leader else "no controller leads at the moment: no owner is released"


def _pods(
    reader: ClusterReader, namespace: str
) -> tuple[list[tuple[SeenPod, ApiOwner, bool]], list[str]]:
    notes: list[str] = []

    def keep(raw: JsonObject) -> tuple[SeenPod, ApiOwner, bool] | None:
        try:
            seen = see_pod(raw, None)
            return (seen, owner_of(PODS, raw), _waits(raw)) if seen.uses_gpu else None
        except InvalidError as error:
            notes.append(f"a pod cannot be read: {error}")
            return None

    path = core("namespaces", namespace, "pods") if namespace else core("pods")
    found = reader.listed(path, keep, {"fieldSelector": LIVING})
    return [item for item in found if item is not None], notes


def _waits(raw: Object) -> bool:
    status = as_object(raw.get("status"), "status")
    return any(
        item.get("type") == "PodScheduled" and item.get("reason") == _UNSCHEDULABLE
        for item in objects(status.get("conditions"), "status.conditions")
    )


def _read(reader: ClusterReader, page: str | GpufenceError) -> OwnerReleases | str:
    try:
        if isinstance(page, GpufenceError):
            raise page
        return read_owners(page)
    except AddressError as error:
        return str(error)
    except GpufenceError as error:
        return silence_reason(error, reader.home())
