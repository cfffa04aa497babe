"""Asking who owns GPU pods, what agents say of them, and what the controller is about to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError, InvalidError
from gpufence.names import CONTROLLER, SYSTEM_NAMESPACE
from gpufence.releases import read_owners
from gpufence.shape import as_object, objects
from gpufence.snapshot import POD_ROWS
from kube import ForbiddenError, NotFoundError, as_is, core
from kube.discovery import Kinds
from kube.kinds import ApiKind
from kube.owners import ApiOwner, owner_of
from kube.workloads import find_owner
from kubectl_gpufence.agents import silence_reason
from kubectl_gpufence.cluster_view import by_node, silent_notes
from kubectl_gpufence.pods import is_ready, node_of, see_pod
from kubectl_gpufence.reader import LIVING, NO_AGENTS, AddressError, page
from kubectl_gpufence.verbs.idle.lines import OwnedPod, SeenOwners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpufence.releases import OwnerReleases
    from gpufence.shape import Object
    from gpufence.snapshot import Snapshot
    from kube import JsonObject
    from kubectl_gpufence.pods import SeenPod
    from kubectl_gpufence.reader import ClusterReader

PODS: Final = ApiKind("v1", "Pod", "pods")
CONTROLLER_LABEL: Final = f"app.kubernetes.io/name={CONTROLLER}"
NO_CONTROLLER: Final = (
    "no controller runs in this cluster: nobody is released, and what agents say is shown"
)
_PAGE: Final = "/v1/owners"
_UNSCHEDULABLE: Final = "Unschedulable"


def gather(reader: ClusterReader, namespace: str) -> SeenOwners:
    """Ask about the GPU pods of a namespace, or of all."""
    pods, notes = _pods(reader, namespace)
    tops, note = _tops(reader, [item for _, item, _ in pods])
    snapshots, silent = snapshots_of(reader, {seen.node for seen, _, _ in pods})
    releases, missing = read_releases(reader)
    owned = tuple(OwnedPod(seen, tops[item.uid], waits) for seen, item, waits in pods)
    brake = f"nobody is released: {releases.brake}" if releases and releases.brake else ""
    said = (*notes, note, *silent, missing, brake)
    return SeenOwners(owned, snapshots, releases, tuple(filter(None, said)))


def snapshots_of(
    reader: ClusterReader, nodes: Iterable[str]
) -> tuple[Mapping[str, Snapshot], Sequence[str]]:
    """Ask the agents of these nodes, and return with their snapshots who does not answer."""
    wanted = set(nodes) - {""}
    agent_pods, hidden = reader.agent_pods()
    if hidden or not agent_pods:
        return {}, [hidden or NO_AGENTS]
    answers = reader.agents((pod for pod in agent_pods if node_of(pod) in wanted), POD_ROWS)
    chosen = by_node(answers)
    snapshots = {
        node: agent.snapshot for node, agent in chosen.items() if agent.snapshot is not None
    }
    return snapshots, silent_notes(item for item in answers if chosen.get(item.node) is item)


def read_releases(reader: ClusterReader) -> tuple[OwnerReleases | None, str]:
    """
    Ask the controller, the replica that leads where there are several; or say why it says nothing.
    """
    if reader.direct.controller:
        url = f"{reader.direct.controller}{_PAGE}"
        answers = [_read(lambda: page(url, reader.agent_seconds))]
    else:
        path = core("namespaces", SYSTEM_NAMESPACE, "pods")
        try:
            pods = reader.listed(path, as_is, {"labelSelector": CONTROLLER_LABEL})
        except ForbiddenError:
            return None, f"you may not list pods in {SYSTEM_NAMESPACE}, where the controller is"
        ready = [pod for pod in pods if is_ready(pod)]
        if not ready:
            return None, "no controller is ready: nobody is released" if pods else NO_CONTROLLER
        answers = reader.together(lambda pod: _read(lambda: reader.proxied(pod, _PAGE)), ready)
    found = [item for item in answers if not isinstance(item, str)]
    if not found:
        return None, f"the controller says nothing: {answers[0]}"
    best = max(found, key=lambda item: (item.leader, item.at))
    return best, "" if best.leader else "no controller leads at the moment: nobody is released"


def climb(reader: ClusterReader, kinds: Kinds, item: ApiOwner) -> ApiOwner:
    """Return who owns an object in the end, or as far up as one may look."""
    try:
        return find_owner(reader.client, kinds, item)
    except (ForbiddenError, NotFoundError):
        above = item.controller
        if above is None:
            return item
        kind = ApiKind(above.api_version, above.kind, "")
        return ApiOwner(kind, item.namespace, above.name, above.uid, "", {})


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


def _tops(reader: ClusterReader, items: Iterable[ApiOwner]) -> tuple[dict[str, ApiOwner], str]:
    """Find who owns each pod in the end, those of one controller together."""
    kinds = Kinds(reader.client)
    siblings: dict[str, list[ApiOwner]] = {}
    for item in items:
        siblings.setdefault(item.controller.uid if item.controller else item.uid, []).append(item)
    groups = list(siblings.values())
    tops = reader.together(lambda group: climb(reader, kinds, group[0]), groups)
    hidden = any(not top.version for top in tops)
    note = "you may not read all owners of pods: some are shown by who is right above them"
    found = {item.uid: top for group, top in zip(groups, tops, strict=True) for item in group}
    return found, note if hidden else ""


def _read(ask: Callable[[], str]) -> OwnerReleases | str:
    try:
        return read_owners(ask())
    except AddressError as error:
        return str(error)
    except GpufenceError as error:
        return silence_reason(error)
