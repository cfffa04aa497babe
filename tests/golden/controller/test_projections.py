"""What the controller keeps of objects: what decides, bounded, and alike things once."""

from pathlib import Path
from typing import Any

import pytest

from controller.cluster.projections import (
    MOST_LABELS,
    MOST_REQUIREMENTS,
    BudgetProjection,
    PodProjection,
    least_allowed,
    project_agent,
    project_budget,
    project_node,
    project_owner,
    project_pod,
    project_scaler,
)
from gpufence import names
from gpufence.dialects import Units
from kube.informers.views import MOST_CHARACTERS, Interner
from kube.kinds import ApiKind
from tests.support.golden import assert_cases, changed, leaves
from tests.support.objects import gpu_pod, pod

FILES = Path(__file__).parent
DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)


def running(item: dict[str, Any], **status: Any) -> PodProjection | None:
    metadata = {"uid": "u", "namespace": "team", **item["metadata"]}
    whole = {**item, "metadata": metadata, "status": {"phase": "Running", **status}}
    return project_pod(whole, Interner())[1]


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    at = "2026-08-01T00:00:00Z"
    return {"type": kind, "status": status, "lastTransitionTime": at, **more}


def worded(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    item = gpu_pod("a", **(spec or {}))
    item["metadata"] |= metadata
    return item


def asking(name: str, units: str = "2", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "resources": {"limits": {names.GPUSHARE_MEMORY: units, "cpu": "1"}},
        **more,
    }


REQUIRED: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}
SPREAD = {"whenUnsatisfiable": "DoNotSchedule"}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
FAR = {"nodeAffinity": {"preferred": ["x" * MOST_CHARACTERS]}}
LABELS = {f"l{place}": "x" for place in range(MOST_LABELS)}
SPECS: dict[str, dict[str, Any]] = {
    "a required affinity": {"affinity": {"podAffinity": REQUIRED}},
    "a required anti-affinity": {"affinity": {"podAntiAffinity": REQUIRED}},
    "a hard spread": {"topologySpreadConstraints": [SPREAD]},
    "a soft spread": {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
    "volumes": {"volumes": [CLAIM]},
    "host ports": {"initContainers": [{"name": "i", "ports": [{"hostPort": 1}]}]},
    "an affinity too long": {"affinity": FAR},
    "a selector that is none": {"nodeSelector": {"a": 1}},
    "two containers": {"containers": [asking("a"), asking("b")]},
    "init containers run alone": {
        "initContainers": [asking("i", "3")],
        "containers": [asking("a")],
    },
    "sidecars stay": {
        "initContainers": [asking("s", restartPolicy="Always"), asking("i", "3")],
        "containers": [asking("a")],
    },
    "an amount that cannot be read": {"containers": [asking("a", "x")]},
    "nothing of a GPU": {"containers": [{"name": "a"}]},
}
GATED = condition("PodScheduled", "False", reason="SchedulingGated")
NO_TIME = {"type": names.GPU_IDLE, "status": "True", "lastTransitionTime": "x"}
PODS: dict[str, PodProjection | None] = {
    "ready, waiting and idle": running(
        gpu_pod("a"),
        conditions=[
            *(condition("Ready", "True"), condition(names.GPU_IDLE, "True")),
            condition("PodScheduled", "False", reason="Unschedulable"),
        ],
    ),
    "gated, and without a time": running(
        gpu_pod("a"), conditions=[condition("Ready", "False"), GATED, NO_TIME]
    ),
    "succeeded": running(gpu_pod("a"), phase="Succeeded"),
    "failed": running(gpu_pod("a"), phase="Failed"),
    "without a GPU": running({**pod("a"), "metadata": {"name": "a", "labels": {"a": "b"}}}),
    "without a GPU, and measured": running(
        pod("a"), conditions=[condition(names.GPU_IDLE, "False")]
    ),
    **{
        f"initialized: {status}": running(
            gpu_pod("a"), conditions=[condition("Initialized", status)]
        )
        for status in ("True", "False")
    },
    "as many labels as are kept": running(worded(labels=LABELS)),
    "one more label": running(worded(labels={**LABELS, "one more": "x"})),
    "a word too long": running(worded(annotations={names.MEMORY: "x" * (MOST_CHARACTERS + 1)})),
    **{title: running(worded(spec)) for title, spec in SPECS.items()},
}
CONTROLLED = {"apiVersion": "apps/v1", "kind": "X", "name": "x", "uid": "x", "controller": True}


def projected(*, uid: str = "u", **more: Any) -> Any:
    metadata = {"uid": uid, "namespace": "team", "name": "w", **more.pop("metadata", {})}
    status = more.pop("status", {})
    item = {"metadata": metadata, "spec": {"replicas": 1, **more}, "status": status}
    return project_owner(item, DEPLOYMENTS, Interner())[1]


def node(offered: dict[str, str], labels: dict[str, Any] | None = None, **spec: Any) -> Any:
    metadata = {"name": "n", "labels": labels or {}}
    item = {"metadata": metadata, "spec": spec, "status": {"allocatable": offered}}
    return project_node(item, Units(), Interner())


OLD: dict[str, Any] = {"metadata": {"ownerReferences": [CONTROLLED]}, "replicas": 0}
SAID = {names.WAKE: "manual", names.RELEASED: "x" * (MOST_CHARACTERS + 1), names.MEMORY: "1"}
UNITS = {names.GPUSHARE_MEMORY: "15"}
TAINT = {"key": "a", "effect": "NoSchedule"}
OTHERS: dict[str, Any] = {
    "an old ReplicaSet": projected(**OLD),
    "an old ReplicaSet with pods": projected(**OLD, status={"replicas": 1}),
    "a template with a GPU": projected(template={"spec": gpu_pod("a")["spec"]}),
    "a template without one": projected(template={"spec": pod("a")["spec"]}),
    "words about idleness": projected(metadata={"annotations": SAID}),
    "a scaler without a kind": project_scaler(
        {
            "metadata": {"uid": "u", "namespace": "team", "name": "s"},
            "spec": {"scaleTargetRef": {"name": "w"}},
        }
    ),
    **{
        f"an agent, {phase}": project_agent(
            {
                "metadata": {"uid": "u"},
                "spec": {"nodeName": "node"},
                "status": {"phase": phase, "podIP": "10.0.0.1"},
            }
        )
        for phase in ("Running", "Pending")
    },
    "a node without GPUs": node({"cpu": "1"}),
    "a node that cannot be read": node(UNITS, {"a": 1}),
    "a node": node(
        {**UNITS, "pods": "110", "cpu": "4"}, {"pool": "x"}, unschedulable=True, taints=[TAINT]
    ),
    "a node that does not say for how many pods": node(UNITS),
    "a node for many pods": node({**UNITS, "pods": "many"}),
}


def test_projections_are_those_reviewed() -> None:
    """What decides is kept, bounded; what cannot be read or is too long is said or left out."""
    usual = [*leaves(running(gpu_pod("a")))]
    pods = {title: changed(usual, leaves(found)) for title, found in PODS.items()}
    others = {title: leaves(found) for title, found in OTHERS.items()}

    assert_cases(FILES / "projections.txt", {"a pod": usual, **pods, **others})


def test_what_is_alike_is_held_once() -> None:
    """Two pods of one owner share what they have in common."""
    shared = Interner()
    states = []
    for name in ("a", "b"):
        item = gpu_pod(name, nodeSelector={"pool": "x"})
        item["metadata"] |= {"uid": name, "namespace": "team"}
        found = project_pod({**item, "status": {"phase": "Running"}}, shared)[1]
        assert found is not None
        assert found.state.gpu is not None
        states.append((found.state.requests, found.state.gpu))
    (asked, one), (asked_too, other) = states

    assert asked is asked_too
    assert one.containers is other.containers
    assert one.node_selector is other.node_selector


def budget(selector: Any, generation: int = 1) -> BudgetProjection:
    return project_budget(
        {
            "metadata": {"uid": "b", "namespace": "team", "generation": 1},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": 1, "observedGeneration": generation},
        }
    )[1]


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "covered"),
    [
        ({"matchLabels": {"app": "w"}}, True),
        ({"matchLabels": {"app": "x"}}, False),
        ({}, True),
        (None, False),
        (expression("In", "v", "w"), True),
        (expression("NotIn", "w"), False),
        (expression("Exists"), True),
        (expression("DoesNotExist"), False),
        ({"matchLabels": {f"{n}": "x" for n in range(MOST_REQUIREMENTS + 1)}}, True),
    ],
)
def test_a_budget_covers_what_it_selects(selector: Any, *, covered: bool) -> None:
    """One that does not say yet allows none; a pod with too many labels has every budget."""
    assert (1 if covered else None) == least_allowed([budget(selector)], [{"app": "w"}])
    assert (None if selector is None else 1) == least_allowed([budget(selector)], [None])
    assert (0, 0) == (budget(selector, 0).allowed, project_budget({})[1].allowed)
