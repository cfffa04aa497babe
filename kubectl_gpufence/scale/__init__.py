"""
`scale`: what to apply so that KEDA scales an owner by seconds of backlog. Nothing is changed here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError, InvalidError, Problem
from gpufence.names import CONTROLLER, SYSTEM_NAMESPACE
from gpufence.shape import as_object
from kube import ForbiddenError, NotFoundError, as_is, core
from kube.discovery import Kinds
from kubectl_gpufence.ask import MissingError
from kubectl_gpufence.direct import AddressError, page
from kubectl_gpufence.pods import is_ready
from kubectl_gpufence.scale.fits import Taking, fitting, offer_of, taking_of
from kubectl_gpufence.scale.manifest import bare, yaml
from kubectl_gpufence.scale.wish import Ceiling, Queue, Wish, documents

if TYPE_CHECKING:
    import argparse

    from kube import JsonObject
    from kube.kinds import ApiKind
    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.output import Output

_CONTROLLER_LABEL: Final = f"app.kubernetes.io/name={CONTROLLER}"
_LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"
_LEAST_TARGET: Final = 0.1


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """Print the objects."""
    check(call)
    kind, owner = _owner(reader, call.namespace, call.owner)
    ceiling, note = _ceiling(call, reader, kind, owner)
    wish = Wish(
        kind=kind,
        namespace=call.namespace,
        name=str(owner["metadata"]["name"]),
        queue=_queue(call),
        ceiling=ceiling,
        target=call.target,
        message=call.message,
        guess=call.guess,
        least=call.least,
        cooldown=round(call.cooldown),
        activity=call.activity or f"http://{CONTROLLER}.{SYSTEM_NAMESPACE}:8080",
        asks_token=call.activity_auth == "token",
    )
    made = documents(wish)
    if call.output == "json":
        output.json({"apiVersion": "v1", "kind": "List", "items": [bare(item) for item in made]})
    else:
        output.lines(yaml(made))
    output.notes([note] if note else [])
    return 0


def check(call: argparse.Namespace) -> None:
    """
    Refuse what cannot be, before the cluster is asked.

    Raises:
        InvalidError: one option contradicts another, or itself.
    """
    if call.target < _LEAST_TARGET:
        raise _no("--target", call.target, "is no time to wait", "write one such as 5s")
    if call.message is None and call.queue_kind != "prometheus":
        raise _no(
            "--seconds-per-message",
            "auto",
            "is measured by Prometheus, and the queue is asked by KEDA alone",
            "add --queue-kind prometheus and --prometheus URL, or say how many, such as 0.5",
        )
    if call.queue_kind == "prometheus" and not call.prometheus:
        remedy = "write its address as KEDA reaches it, such as http://prometheus.monitoring:9090"
        raise _no("--prometheus", "", "is missing", remedy)
    if call.most is not None and call.most < max(call.least, 1):
        raise _no("--max", call.most, f"is less than --min {call.least}", "write at least as many")


def _no(option: str, value: object, reason: str, remedy: str) -> InvalidError:
    return InvalidError(Problem(option, str(value), reason, remedy))


def _queue(call: argparse.Namespace) -> Queue:
    secret, _, key = call.host_secret.partition("/")
    return Queue(
        call.queue,
        call.queue_kind,
        secret,
        key or "host",
        call.prometheus or "",
        call.waiting or "",
        call.done or "",
    )


def _owner(reader: ClusterReader, namespace: str, word: str) -> tuple[ApiKind, JsonObject]:
    """
    Find what is to be scaled.

    Raises:
        MissingError: there is no such kind, or nothing of that name, or it has no scale.
    """
    word_of_kind, separator, name = word.rpartition("/")
    kind = Kinds(reader.client).called(word_of_kind) if separator else None
    if kind is None:
        what = f'no kind is called "{word_of_kind}"' if separator else f'"{word}" names no kind'
        raise MissingError(f"{what}: write such as deploy/{name}")
    if not kind.scalable:
        raise MissingError(
            f"{kind.plural} have no replicas to scale: name a Deployment, or the like"
        )
    try:
        return kind, reader.client.get(kind.path(namespace, name))
    except NotFoundError:
        raise MissingError(f"there is no {kind.kind} {name} in namespace {namespace}") from None


def _ceiling(
    call: argparse.Namespace, reader: ClusterReader, kind: ApiKind, owner: JsonObject
) -> tuple[Ceiling, str]:
    """Return how many replicas there may be, and a note where that is a guess."""
    if call.most is not None:
        return Ceiling(call.most, "as you said"), ""
    beyond = "what is beyond waits for a card"
    said = _room(reader, f"/v1/room/{call.namespace}/{kind.plural}/{owner['metadata']['name']}")
    if said is not None:
        replicas, room = said
        why = f"{replicas} there are, and {room} more fit: {beyond}"
        return _least(call, Ceiling(replicas + room, why)), ""
    replicas, room = _by_nodes(reader, owner)
    why = f"{replicas} there are, and {room} more fit by what nodes offer: {beyond}"
    note = (
        "no controller answers: maxReplicaCount is what nodes offer of GPUs at the moment, without "
        "taints, affinity, and the memory of cards that no scheduler counts"
    )
    return _least(call, Ceiling(replicas + room, why)), note


def _least(call: argparse.Namespace, ceiling: Ceiling) -> Ceiling:
    """
    Raises:
        InvalidError: none fits, or fewer than are to be there always.
    """
    if ceiling.replicas < max(call.least, 1):
        remedy = "make room, or write --max N to begin with replicas that wait"
        raise _no("--max", "auto", f"is {ceiling.replicas}: {ceiling.why}", remedy)
    return ceiling


def _room(reader: ClusterReader, path: str) -> tuple[int, int] | None:
    """Ask the controller how many there are, and how many more fit."""
    for text in _pages(reader, path):
        try:
            said = as_object(json.loads(text), path)
            replicas, room = said.get("replicas"), said.get("room")
        except (ValueError, GpufenceError):
            continue
        if isinstance(replicas, int) and isinstance(room, int):
            return replicas, room
    return None


def _pages(reader: ClusterReader, path: str) -> list[str]:
    if reader.direct.controller:
        try:
            return [page(f"{reader.direct.controller}{path}", reader.agent_seconds)]
        except AddressError:
            return []
    try:
        where = core("namespaces", SYSTEM_NAMESPACE, "pods")
        pods = reader.listed(where, as_is, {"labelSelector": _CONTROLLER_LABEL})
    except ForbiddenError:
        return []

    def asked(pod: JsonObject) -> str:
        try:
            return reader.proxied(pod, path)
        except GpufenceError:
            return ""

    return reader.together(asked, [pod for pod in pods if is_ready(pod)])


def _by_nodes(reader: ClusterReader, owner: JsonObject) -> tuple[int, int]:
    """Reckon from what the API server shows."""
    spec = as_object(owner.get("spec"), "spec")
    template = as_object(spec.get("template"), "spec.template")
    metadata = as_object(template.get("metadata"), "metadata")
    wanted = taking_of(metadata, as_object(template.get("spec"), "spec"))
    if not any(wanted.amounts.values()):
        remedy = "name one that does, or write --max N"
        raise _no("OWNER", str(owner["metadata"]["name"]), "asks for no GPU", remedy)
    try:
        offers = reader.listed(core("nodes"), offer_of)
        pods = reader.listed(core("pods"), _taken, {"fieldSelector": _LIVING})
    except ForbiddenError as error:
        remedy = "write --max N, or have somebody run this who may list nodes and pods"
        raise _no("--max", "auto", f"cannot be reckoned: {error}", remedy) from error
    replicas = spec.get("replicas")
    there = replicas if isinstance(replicas, int) else 0
    found = [offer for offer in offers if offer is not None]
    return there, fitting(wanted, found, [pod for pod in pods if pod is not None])


def _taken(raw: JsonObject) -> Taking | None:
    try:
        demand = taking_of(
            as_object(raw.get("metadata"), "metadata"), as_object(raw.get("spec"), "spec")
        )
    except InvalidError:
        return None
    return demand if demand.node and demand.amounts else None
