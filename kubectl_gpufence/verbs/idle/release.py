"""`release`: what the controller would do and why not, or one owner at once, by a person's word."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError
from gpufence.idle import ReleaseNote, ReleasePhase, read_note
from gpufence.names import RELEASED
from gpufence.shape import as_object
from kube import ForbiddenError, as_is, group, workloads
from kube.discovery import Kinds
from kubectl_gpufence.arguments import add_output, add_scope, owner
from kubectl_gpufence.verbs.idle.lines import (
    IDLE,
    WAITS,
    idle_lines,
    idle_listing,
    is_about,
    plan_lines,
)
from kubectl_gpufence.verbs.idle.owners import (
    RefusedError,
    carefully,
    gather,
    named_owner,
    note_on,
)
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from gpufence.shape import Object
    from kube import Client
    from kube.owners import ApiOwner
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.verbs.idle.lines import IdleLine

EXAMPLES: Final = """\
examples:
  kubectl gpufence release -A --dry-run       what the controller would do, when, and why not
  kubectl gpufence release deploy/worker      at once, if agents call all its pods idle
"""

_HPA: Final = ("autoscaling/v2", "horizontalpodautoscalers")
_SCALED_OBJECT: Final = ("keda.sh/", "ScaledObject")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("owner", metavar="OWNER", type=owner, nargs="?")
    add_scope(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--even-if-busy", action="store_true", help="whatever its pods do")
    add_output(parser, "table", "json")
    parser.set_defaults(refusal=_refusal)


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Show the plan, or release one owner with the rights of whoever calls.

    Raises:
        MissingError: there is no such owner.
        RefusedError: something speaks against it.
    """
    kinds = Kinds(reader.client)
    owner = named_owner(reader.client, kinds, call.namespace, call.owner) if call.owner else None
    if call.dry_run or owner is None:
        return _plan(call, reader, output, owner)
    if not (owner.active if owner.stoppable else owner.replicas):
        output.lines([f"{owner.shown} is not running: nothing to be done"])
        return 0
    against = _against(reader, kinds, owner)
    if against and not call.even_if_busy:
        raise RefusedError(
            f"{owner.shown} is not released: {against}; --even-if-busy releases it all the same"
        )
    replicas = 1 if owner.stoppable else owner.replicas or 1
    _release(reader.client, owner, replicas, f"by kubectl, {against or 'all its pods are idle'}")
    what = "stopped" if owner.stoppable else f"released, {counted(replicas, 'replica')}"
    back = f"kubectl gpufence wake -n {owner.namespace} {owner.kind.kind.lower()}/{owner.name}"
    output.lines([f"{owner.shown} is {what}; `{back}` brings it back"])
    return 0


def _plan(
    call: argparse.Namespace, reader: ClusterReader, output: Output, owner: ApiOwner | None
) -> int:
    cluster = gather(reader, call.namespace)
    lines = idle_lines(cluster, call.namespace)
    if owner is not None:
        lines = [line for line in lines if is_about(line, owner)]
    nothing = "no owner there has GPUs that could be released"
    listing = idle_listing(lines, call.namespace, nothing, cluster.notes)
    if call.output == "json" or not lines:
        output.show(listing, call.output)
        return 0
    output.lines(plan_lines(listing, output.display))
    output.notes(cluster.notes)
    return 0


def _against(reader: ClusterReader, kinds: Kinds, owner: ApiOwner) -> str:
    """
    Return what speaks against a release: who scales the owner, that one may not see who does, or a
    pod that agents do not call idle at this moment.
    """
    scaled = _scaled(reader, kinds, owner)
    if scaled:
        return scaled
    cluster = gather(reader, owner.namespace)
    line = next((item for item in idle_lines(cluster, "") if is_about(item, owner)), None)
    return "it has no pod with a GPU" if line is None else _working(line)


def _working(line: IdleLine) -> str:
    for use in line.uses:
        if use.state not in {IDLE, WAITS}:
            why = f" ({use.why})" if use.why else ""
            return f"pod {use.pod.name} is {use.state}{why}"
    return ""


def _scaled(reader: ClusterReader, kinds: Kinds, owner: ApiOwner) -> str:
    """Say which autoscaler's target an owner is, or that nobody can tell."""
    hidden = ""
    version, plural = _HPA
    paths = [("HorizontalPodAutoscaler", group(version, "namespaces", owner.namespace, plural))]
    keda = kinds.find(*_SCALED_OBJECT)
    if keda is not None:
        paths.insert(0, (keda.kind, keda.path(owner.namespace)))
    for kind, path in paths:
        try:
            items = reader.listed(path, as_is)
        except ForbiddenError:
            where = f"namespace {owner.namespace}"
            hidden = f"you may not list {kind}s in {where}, of which one may scale it"
            continue
        name = next(_targeting(items, owner), "")
        if name:
            return f"{kind} {name} scales it, and would fight back"
    return hidden


def _targeting(items: Iterable[Object], owner: ApiOwner) -> Iterator[str]:
    """Yield the names of those that scale an owner; one that names no kind means a Deployment."""
    for item in items:
        spec = as_object(item.get("spec"), "spec")
        target = as_object(spec.get("scaleTargetRef"), "spec.scaleTargetRef")
        group_of = str(target.get("apiVersion") or "apps/v1").rpartition("/")[0]
        aim = group_of, target.get("kind") or "Deployment", target.get("name")
        if aim == (owner.kind.group, owner.kind.kind, owner.name):
            yield str(as_object(item.get("metadata"), "metadata").get("name", ""))


def _release(client: Client, owner: ApiOwner, replicas: int, why: str) -> None:
    """
    Write down what there was, take it, and write that down: whoever finds the first note alone
    knows how far it came.
    """
    note = _noted(owner, ReleaseNote(ReleasePhase.RELEASING, time.time(), replicas, why))
    owner = note_on(client, owner, note)
    owner = carefully(client, owner, lambda item: workloads.bring_to(client, item, 0))
    note_on(client, owner, note._replace(phase=ReleasePhase.RELEASED))


def _noted(owner: ApiOwner, note: ReleaseNote) -> ReleaseNote:
    """Keep what an earlier note knows of earlier releases."""
    try:
        old = read_note(owner.annotations.get(RELEASED, ""))
    except GpufenceError:
        return note
    return old._replace(phase=note.phase, at=note.at, replicas=note.replicas, why=note.why)


def _refusal(call: argparse.Namespace) -> str:
    named = call.owner or call.dry_run
    return "" if named else "name one owner, or see with --dry-run what would be done"
