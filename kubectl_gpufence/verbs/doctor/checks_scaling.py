"""PURE. ScaledObjects of owners of GPUs: whether they count what works, and not only what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.dialects import GPU_RESOURCES
from gpufence.findings import Finding, look, ok, unknown
from gpufence.shape import Object, as_object, as_text, objects
from kubectl_gpufence.view import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.verbs.doctor.installation import Installation

_AUTOSCALERS: Final = "autoscalers"
_ACTIVITY: Final = "/v1/activity/"


class Scaler(NamedTuple):
    """A ScaledObject and what it scales; `counts_work`: a trigger of it asks the controller."""

    namespace: str
    name: str
    version: str
    kind: str
    target: str
    counts_work: bool


def read_scaler(raw: Object) -> Scaler:
    """Read one ScaledObject."""
    metadata = as_object(raw.get("metadata"), "metadata")
    spec = as_object(raw.get("spec"), "spec")
    target = as_object(spec.get("scaleTargetRef"), "spec.scaleTargetRef")
    triggers = objects(spec.get("triggers"), "spec.triggers")
    asked = [as_object(trigger.get("metadata"), "metadata") for trigger in triggers]
    return Scaler(
        namespace=as_text(metadata.get("namespace"), "metadata.namespace"),
        name=as_text(metadata.get("name"), "metadata.name"),
        version=as_text(target.get("apiVersion"), "apiVersion") or "apps/v1",
        kind=as_text(target.get("kind"), "kind") or "Deployment",
        target=as_text(target.get("name"), "name"),
        counts_work=any(_ACTIVITY in as_text(item.get("url"), "url") for item in asked),
    )


def asks_gpu(owner: Object) -> bool:
    """Return whether the pods of an owner ask for GPUs by resources."""
    spec = as_object(owner.get("spec"), "spec")
    template = as_object(spec.get("template"), "spec.template")
    pod = as_object(template.get("spec"), "spec.template.spec")
    resources = (
        as_object(container.get("resources"), "resources")
        for container in objects(pod.get("containers"), "spec.containers")
    )
    return any(GPU_RESOURCES & as_object(each.get("limits"), "limits").keys() for each in resources)


def check_scaling(installation: Installation) -> Iterator[Finding]:
    """Find ScaledObjects that take away workers that work."""
    scalers = installation.scalers
    if scalers.hidden:
        yield unknown(_AUTOSCALERS, scalers.hidden, "ask an administrator to run this")
        return
    found = scalers.value or []
    for scaler in found:
        if not scaler.counts_work:
            yield look(
                _AUTOSCALERS,
                f"ScaledObject {scaler.namespace}/{scaler.name} of {scaler.kind}/{scaler.target} "
                "counts what waits and not what works: a pool that keeps up looks as if it were "
                "not needed, and a worker that is busy for longer than the cooldown is taken away",
                "add the trigger busy of deploy/examples/keda/scaled-object.yaml",
            )
    if found and all(scaler.counts_work for scaler in found):
        count = counted(len(found), "ScaledObject")
        yield ok(_AUTOSCALERS, f"{count} of GPU owners: what waits counts, and what works")
