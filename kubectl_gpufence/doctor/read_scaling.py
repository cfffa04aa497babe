"""
Reading who scales owners of GPUs: ScaledObjects where KEDA is installed, and autoscalers of others.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from gpufence.errors import GpufenceError, InvalidError
from gpufence.shape import Object, as_object, as_text, as_texts, objects
from kube import ForbiddenError, NotFoundError, as_is, core, group
from kube.discovery import Kinds
from kubectl_gpufence.doctor.checks_scaling import SCALED_OBJECT, Scaler
from kubectl_gpufence.doctor.installation import MaybeHidden
from kubectl_gpufence.scale.fits import fitting, offer_of, taking_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from kube import JsonObject
    from kubectl_gpufence.ask import ClusterReader
    from kubectl_gpufence.scale.fits import Offer, Taking

_MOST: Final = 200
_LIVING: Final = "status.phase!=Succeeded,status.phase!=Failed"
_KINDS: Final = {
    SCALED_OBJECT: ("keda.sh/v1alpha1", "scaledobjects"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
}


def read_scalers(reader: ClusterReader, fenced: Collection[str]) -> MaybeHidden[list[Scaler]]:
    """Find the autoscalers of these namespaces whose targets ask for GPUs."""
    found: list[tuple[str, JsonObject]] = []
    for kind, (version, plural) in _KINDS.items():
        try:
            items = reader.listed(group(version, plural), as_is)
        except NotFoundError:
            continue
        except ForbiddenError:
            return MaybeHidden(hidden=f"you may not list {plural} in all namespaces")
        found += [(kind, item) for item in items if _concerns(item, fenced)]
    if not found:
        return MaybeHidden([])
    try:
        offers = [item for item in reader.listed(core("nodes"), offer_of) if item is not None]
        pods = reader.listed(core("pods"), as_is, {"fieldSelector": _LIVING})
    except ForbiddenError:
        return MaybeHidden(hidden="you may not list the nodes and pods that autoscalers scale to")
    kinds = Kinds(reader.client)
    made = (_scaler(reader, kinds, kind, item, offers, pods) for kind, item in found[:_MOST])
    return MaybeHidden([scaler for scaler in made if scaler is not None])


def _concerns(item: JsonObject, fenced: Collection[str]) -> bool:
    """
    Tell whether an object is in a namespace of ours, and nobody else's: KEDA makes autoscalers of
    its own.
    """
    metadata = as_object(item.get("metadata"), "metadata")
    owners = objects(metadata.get("ownerReferences"), "ownerReferences")
    return metadata.get("namespace") in fenced and not any(
        owner.get("kind") == SCALED_OBJECT for owner in owners
    )


def _scaler(
    reader: ClusterReader,
    kinds: Kinds,
    kind: str,
    item: JsonObject,
    offers: list[Offer],
    pods: list[JsonObject],
) -> Scaler | None:
    """Put together what is known of one; None where its target is gone, or asks for no GPU."""
    metadata = as_object(item.get("metadata"), "metadata")
    spec = as_object(item.get("spec"), "spec")
    target = as_object(spec.get("scaleTargetRef"), "spec.scaleTargetRef")
    namespace, name = str(metadata.get("namespace")), str(target.get("name"))
    version, word = str(target.get("apiVersion") or "apps/v1"), target.get("kind") or "Deployment"
    try:
        known = kinds.find(version, str(word))
        owner = None if known is None else reader.client.get(known.path(namespace, name))
        wanted = None if owner is None else _template(owner)
    except (GpufenceError, ValueError):
        return None
    if owner is None or wanted is None or not any(wanted.amounts.values()):
        return None
    mine = [pod for pod in pods if _belongs(pod, namespace, owner)]
    taken = [_taking(pod) for pod in pods]
    room = fitting(wanted, offers, [one for one in taken if one is not None])
    there = as_object(owner.get("spec"), "spec").get("replicas")
    return Scaler(
        kind=kind,
        namespace=namespace,
        name=str(metadata.get("name")),
        target=f"{word}/{name}",
        spec=spec,
        start_seconds=max(filter(None, map(_start_seconds, mine)), default=None),
        most=(there if isinstance(there, int) else len(mine)) + room,
    )


def _template(owner: JsonObject) -> Taking:
    spec = as_object(owner.get("spec"), "spec")
    template = as_object(spec.get("template"), "spec.template")
    metadata = as_object(template.get("metadata"), "metadata")
    return taking_of(metadata, as_object(template.get("spec"), "spec"))


def _taking(pod: JsonObject) -> Taking | None:
    try:
        taking = taking_of(_part(pod, "metadata"), _part(pod, "spec"))
    except InvalidError:
        return None
    return taking if taking.node else None


def _belongs(pod: JsonObject, namespace: str, owner: JsonObject) -> bool:
    metadata = _part(pod, "metadata")
    selector = as_object(_part(owner, "spec").get("selector"), "selector")
    wanted = as_texts(selector.get("matchLabels"), "matchLabels")
    labels = as_texts(metadata.get("labels"), "labels")
    return (
        metadata.get("namespace") == namespace
        and bool(wanted)
        and (wanted.items() <= labels.items())
    )


def _start_seconds(pod: JsonObject) -> float | None:
    """
    Return how long a pod took to be ready for the first time; None where that cannot be seen: it
    is not, or its containers have started again.
    """
    status = _part(pod, "status")
    states = objects(status.get("containerStatuses"), "containerStatuses")
    if any(item.get("restartCount") for item in states):
        return None
    for condition in objects(status.get("conditions"), "conditions"):
        if (condition.get("type"), condition.get("status")) == ("Ready", "True"):
            began = as_text(status.get("startTime"), "startTime")
            ready = as_text(condition.get("lastTransitionTime"), "lastTransitionTime")
            try:
                between = datetime.fromisoformat(ready) - datetime.fromisoformat(began)
            except ValueError:
                return None
            return between.total_seconds()
    return None


def _part(item: JsonObject, field: str) -> Object:
    return as_object(item.get(field), field)
