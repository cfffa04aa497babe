"""PURE. What is to be said of containers beside each other: their parts, and who asks for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import GPU_RESOURCES, PREFIXES
from gpufence.errors import annotation_problem
from gpufence.quantity import write_mebibytes
from gpufence.shape import as_object, as_text, objects
from gpufence.text import listed
from webhook.rewrite.containers import read_start
from webhook.rewrite.inputs import PodLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpufence.shape import Object
    from webhook.rewrite.containers import Starts
    from webhook.rewrite.inputs import PlanInputs

_NO_DEVICES = frozenset(("", "none", "void"))
_NO_SERVERS = frozenset(("ray", "sshd", "spark"))
_HEARS_NOTHING = (
    "nothing is configured there, and what it takes counts for the pod; ask for a GPU in its "
    f"limits, or set {names.VISIBLE_DEVICES} to void there"
)


def neighbour_words(inputs: PlanInputs, manifest: Object, starts: Starts) -> list[str]:
    """Return what the creator of a pod of several containers should know about them."""
    limits = inputs.limits
    if not isinstance(limits, PodLimits):
        return []
    asking = {part.container for part in limits.first.parts}
    return [*_split(inputs, limits), *_reaching(inputs, manifest, asking, starts)]


def unasked(spec: Object) -> str:
    """Return what to say of a pod that asks for no GPU and reaches all; empty where none does."""
    for item in _staying(spec):
        devices = _devices(item)
        if devices is not None and devices not in _NO_DEVICES:
            return (
                f'{_name(item)}: {names.VISIBLE_DEVICES} "{devices}" gives it cards that the pod '
                f"does not ask for: ask for a GPU in its limits, or write {names.MEMORY}; until "
                f"then {names.UNDECLARED_USE} of its namespace says what becomes of it"
            )
    return ""


def only_requested(spec: Object) -> str:
    """
    Return what to say where a container asks for GPUs in its requests alone, which the API server
    refuses; empty where none does.
    """
    for field in ("initContainers", "containers"):
        for item in objects(spec.get(field), f"spec.{field}"):
            resources = as_object(item.get("resources"), "resources")
            limits = as_object(resources.get("limits"), "limits")
            for key in as_object(resources.get("requests"), "requests"):
                if (key in GPU_RESOURCES or key.startswith(PREFIXES)) and key not in limits:
                    name = as_text(item.get("name"), "name")
                    return (
                        f"{name} asks for {key} in its requests only, which Kubernetes refuses: "
                        "write it in its limits as well"
                    )
    return ""


def _split(inputs: PlanInputs, limits: PodLimits) -> list[str]:
    """Say that containers share the pod's amount equally, and by which key they would not."""
    total = inputs.options.memory_bytes
    if total is None:
        return []
    parts = {
        part.container: part.limit_bytes
        for part in limits.first.parts
        if part.container not in inputs.options.memory_of
        and part.limit_bytes is not None
        and part.limit_bytes < total
    }
    if len(parts) < 2:  # noqa: PLR2004 - one alone has what others were not given by name
        return []
    each = write_mebibytes(min(parts.values()))
    first = next(iter(parts))
    problem = annotation_problem(
        names.MEMORY,
        write_mebibytes(total),
        f"is split equally, {each} each for {listed(list(parts))}",
        f"{names.MEMORY_OF_CONTAINER}{first} gives {first} another part, and the others the rest",
    )
    return [problem.sentence]


def _reaching(
    inputs: PlanInputs, manifest: Object, asking: set[str], starts: Starts
) -> Iterator[str]:
    """Say which containers reach a card that they do not ask for, as far as can be seen."""
    for item in _staying(as_object(manifest.get("spec"), "spec")):
        name = _name(item)
        if name in asking or (devices := _devices(item)) in _NO_DEVICES:
            continue
        if devices is not None:
            given = f'{names.VISIBLE_DEVICES} "{devices}" gives it cards that it does not ask for'
            yield f"{name}: {given}: {_HEARS_NOTHING}"
            continue
        launch = read_start(item, inputs.options, manifest, starts)
        engine = launch.engine if launch is not None else None
        if engine is not None and engine.name not in _NO_SERVERS:
            runs = f"runs {engine.name} and asks for no GPU, and reaches every card of the node"
            yield f"{name}: {runs} where its image sets {names.VISIBLE_DEVICES}: {_HEARS_NOTHING}"


def _staying(spec: Object) -> Iterator[Object]:
    """Yield the containers that run as long as the pod does."""
    for item in objects(spec.get("initContainers"), "spec.initContainers"):
        if item.get("restartPolicy") == "Always":
            yield item
    yield from objects(spec.get("containers"), "spec.containers")


def _devices(item: Object) -> str | None:
    """Return what a container's own variable says of devices; None where it says nothing."""
    said = [
        as_text(entry.get("value"), "value").strip()
        for entry in objects(item.get("env"), "env")
        if entry.get("name") == names.VISIBLE_DEVICES and not entry.get("valueFrom")
    ]
    return said[-1] if said else None


def _name(item: Object) -> str:
    return as_text(item.get("name"), "name")
