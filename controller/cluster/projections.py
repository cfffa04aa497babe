"""
PURE. What is remembered of each object that is watched beside the pods: little, and what is alike
once; and how many pods may go by the PodDisruptionBudgets that cover them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from controller.cluster.pods import PODS, read_state
from controller.model import NodeRoom, PodState
from gpufence import names
from gpufence.errors import InvalidError
from gpufence.nodes import figures_of
from gpufence.quantity import read_count
from kube.informers.views import MOST_CHARACTERS, UNREADABLE, view_node
from kube.owners import ApiOwner, owner_of
from kube.replies import objects_of, only_texts, part_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gpufence.dialects import Units
    from kube.informers.interning import Interner
    from kube.kinds import ApiKind
    from kube.replies import JsonObject

MOST_REQUIREMENTS: Final = 64
"""Beyond it a budget counts as one that covers every pod of its namespace."""
_WORDS: Final = (
    *(names.IDLE_AFTER, names.IDLE_AFTER_CONTENDED, names.KEEP_UNTIL, names.WAKE),
    names.PODS_WITHOUT_GPU,
    *(names.RELEASED, names.STOPPED),
)


class KeptOwner(NamedTuple):
    """Whoever may own pods; `template` is the next of them, where it asks for a GPU."""

    owner: ApiOwner
    template: PodState | None = None


class ScaleTarget(NamedTuple):
    """Whom an autoscaler scales."""

    namespace: str
    group: str
    kind: str
    name: str


def keep_owner(item: JsonObject, kind: ApiKind, shared: Interner) -> tuple[str, KeptOwner | None]:
    """Keep, by UID, who may own pods; old ReplicaSets, of which there are many, own none."""
    owner = owner_of(kind, item)
    words = {
        key: text if len(text) <= MOST_CHARACTERS else UNREADABLE
        for key, text in owner.annotations.items()
        if key in _WORDS
    }
    owner = owner._replace(
        namespace=shared.value(owner.namespace),
        annotations=shared.json(words),
        controller=None if owner.controller is None else shared.value(owner.controller),
    )
    if owner.controller is not None:
        there = part_of(item, "status").get("replicas")
        gone = owner.replicas == 0 and not there and names.RELEASED not in words
        return owner.uid, None if gone else KeptOwner(owner)
    template = part_of(part_of(item, "spec"), "template")
    metadata = {**part_of(template, "metadata"), "namespace": owner.namespace, "name": owner.name}
    state = read_state(metadata, part_of(template, "spec"), shared, always_gpu=False)
    return owner.uid, KeptOwner(owner, None if state.gpu is None else state)


def keep_node(node: JsonObject, units: Units, shared: Interner) -> tuple[str, NodeRoom | None]:
    """
    Keep of a GPU node what decides who may run there; of another one, or one that cannot be read,
    nothing.
    """
    name, found = view_node(node, units, shared)
    if found is None:
        return name, None
    spec = part_of(node, "spec")
    return name, NodeRoom(
        node=found,
        allocatable=shared.json(_offered(node)),
        taints=tuple(shared.json(only_texts(item)) for item in objects_of(spec, "taints")),
        unschedulable=spec.get("unschedulable") is True,
    )


def _offered(node: JsonObject) -> dict[str, int]:
    """Read what a node has of GPU resources, and for how many pods it has places, if it says so."""
    found = figures_of(node, "allocatable")
    pods = part_of(part_of(node, "status"), "allocatable").get(PODS)
    try:
        return found if pods is None else {**found, PODS: read_count(pods, PODS)}
    except InvalidError:
        return found


def keep_scaler(scaler: JsonObject) -> tuple[str, tuple[ScaleTarget, str]]:
    """
    Keep whom an autoscaler scales, and its name: of a HorizontalPodAutoscaler or a ScaledObject,
    which means a Deployment where it names no kind.
    """
    metadata = part_of(scaler, "metadata")
    aim = part_of(part_of(scaler, "spec"), "scaleTargetRef")
    api_version = str(aim.get("apiVersion") or "apps/v1")
    target = ScaleTarget(
        namespace=str(metadata.get("namespace", "")),
        group=api_version.rpartition("/")[0],
        kind=str(aim.get("kind") or "Deployment"),
        name=str(aim.get("name", "")),
    )
    return str(metadata.get("uid", "")), (target, str(metadata.get("name", "")))


def keep_agent(pod: JsonObject) -> tuple[str, tuple[str, str] | None]:
    """Keep on which node an agent runs, and its address."""
    metadata, spec, status = (part_of(pod, key) for key in ("metadata", "spec", "status"))
    node, address = str(spec.get("nodeName", "")), str(status.get("podIP", ""))
    running = status.get("phase") == "Running" and metadata.get("deletionTimestamp") is None
    return str(metadata.get("uid", "")), (node, address) if running and address else None


class Requirement(NamedTuple):
    """One line of a selector."""

    key: str
    operator: str
    values: frozenset[str]


class KeptBudget(NamedTuple):
    """A budget. `selector` is None where it covers nobody."""

    namespace: str
    selector: tuple[Requirement, ...] | None
    allowed: int


def keep_budget(budget: JsonObject) -> tuple[str, KeptBudget]:
    """Keep whom a budget covers, and how many of them may go; none where it does not say yet."""
    metadata, spec, status = (part_of(budget, key) for key in ("metadata", "spec", "status"))
    allowed = status.get("disruptionsAllowed")
    current = status.get("observedGeneration") == metadata.get("generation")
    return str(metadata.get("uid", "")), KeptBudget(
        namespace=str(metadata.get("namespace", "")),
        selector=_selector(spec.get("selector")),
        allowed=allowed if isinstance(allowed, int) and current else 0,
    )


def least_allowed(
    budgets: Iterable[KeptBudget], labels: Collection[Mapping[str, str] | None]
) -> int | None:
    """
    Return how many pods with these labels may go at once by the budgets of their namespace; None
    where no budget covers any of them. A pod whose labels nobody knows is covered by each.
    """
    return min(
        (
            budget.allowed
            for budget in budgets
            if budget.selector is not None
            and any(each is None or _covers(budget.selector, each) for each in labels)
        ),
        default=None,
    )


def _selector(selector: Any) -> tuple[Requirement, ...] | None:  # noqa: ANN401 - JSON as it came
    if not isinstance(selector, dict):
        return None
    found = [
        Requirement(key, "In", frozenset([str(value)]))
        for key, value in part_of(selector, "matchLabels").items()
    ]
    for item in selector.get("matchExpressions") or []:
        values = item.get("values") or []
        operator = str(item.get("operator"))
        found.append(Requirement(str(item.get("key")), operator, frozenset(map(str, values))))
    return tuple(found) if len(found) <= MOST_REQUIREMENTS else ()


def _covers(selector: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    return all(_holds(requirement, labels) for requirement in selector)


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    among = value in requirement.values
    return among if requirement.operator == "In" else not among
