"""What is remembered of objects: what decides, bounded, and alike things once."""

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
from kube.informers.views import MOST_CHARACTERS, UNREADABLE, Interner
from kube.kinds import ApiKind
from tests.support.objects import gpu_pod, pod

AT = "2026-08-01T00:00:00Z"
SECONDS = 1785542400.0
DEPLOYMENTS = ApiKind("apps/v1", "Deployment", "deployments", scalable=True)


def kept(item: dict[str, Any], **status: Any) -> PodProjection:
    item = {**item, "status": {"phase": "Running", **status}}
    item["metadata"] = {"uid": "u", "namespace": "team", **item["metadata"]}
    found = project_pod(item, Interner())[1]
    assert found is not None
    return found


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": AT, **more}


def test_conditions_tell_since_when() -> None:
    """Readiness, waiting and idleness are kept with their times."""
    state = kept(
        gpu_pod("a"),
        conditions=[
            condition("Ready", "True"),
            condition("PodScheduled", "False", reason="Unschedulable"),
            condition(names.GPU_IDLE, "True"),
        ],
    ).state

    assert (SECONDS, SECONDS, "True", SECONDS) == (
        state.ready_at,
        state.waiting_since,
        state.idle,
        state.idle_at,
    )


def test_who_is_gated_does_not_wait_for_a_node() -> None:
    """Nor is one ready that is not, nor a time known that cannot be read."""
    state = kept(
        gpu_pod("a"),
        conditions=[
            condition("Ready", "False"),
            condition("PodScheduled", "False", reason="SchedulingGated"),
            {"type": names.GPU_IDLE, "status": "True", "lastTransitionTime": "x"},
        ],
    ).state

    assert (None, None, None) == (state.ready_at, state.waiting_since, state.idle_at)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_has_ended_is_forgotten(phase: str) -> None:
    """It holds nothing."""
    item = {**pod("a"), "status": {"phase": phase}}

    assert project_pod(item, Interner())[1] is None


def test_a_pod_without_gpus_takes_room_and_may_have_a_budget() -> None:
    """Of it labels are kept, and no tolerations."""
    item = pod("a")
    item["metadata"]["labels"] = {"a": "b"}
    found = kept(item)

    assert (None, (), {"a": "b"}) == (found.state.gpu, found.state.tolerations, found.labels)


@pytest.mark.parametrize(("status", "expected"), [("False", True), ("True", False), ("", False)])
def test_whether_init_containers_run_is_kept(status: str, expected: bool) -> None:  # noqa: FBT001 (a parameter)
    """Until a kubelet has said so, they do not."""
    conditions = [condition("Initialized", status)] if status else []

    assert expected is kept(gpu_pod("a"), conditions=conditions).state.initializing


def test_many_labels_are_kept_whole_or_not_at_all() -> None:
    """A part of them would hide what selects by the others."""
    item = gpu_pod("a")
    item["metadata"]["labels"] = labels = {f"l{place}": "x" for place in range(MOST_LABELS)}

    assert labels == kept(item).labels
    labels["one more"] = "x"
    assert None is kept(item).labels


def test_a_pod_that_is_measured_has_to_do_with_gpus() -> None:
    """Its devices may come by resource claims, which nobody reads."""
    found = kept(pod("a"), conditions=[condition(names.GPU_IDLE, "False")])

    assert found.state.gpu is not None


def test_what_is_alike_is_held_once() -> None:
    """Two pods of one owner share what they have in common."""
    shared = Interner()
    states = []
    for name in ("a", "b"):
        item = gpu_pod(name, nodeSelector={"pool": "x"})
        item["metadata"] |= {"uid": name, "namespace": "team"}
        found = project_pod({**item, "status": {"phase": "Running"}}, shared)[1]
        assert found is not None
        states.append(found.state)
    one, other = (state.gpu for state in states)

    assert one is not None
    assert other is not None
    assert one.containers is other.containers
    assert one.node_selector is other.node_selector
    assert states[0].requests is states[1].requests


def test_words_too_long_are_kept_as_unreadable() -> None:
    """Whoever reads them says so."""
    item = gpu_pod("a")
    item["metadata"]["annotations"] = {names.MEMORY: "x" * (MOST_CHARACTERS + 1)}
    found = kept(item).state.gpu

    assert found is not None
    assert {names.MEMORY: UNREADABLE} == found.annotations


def test_an_affinity_too_long_is_not_worked_out() -> None:
    """It counts as something that decides where a pod may run."""
    rule = {"nodeAffinity": {"preferred": ["x" * MOST_CHARACTERS]}}
    state = kept(gpu_pod("a", affinity=rule)).state

    assert state.gpu is not None
    assert ({}, "its affinity is too long to be read") == (state.gpu.affinity, state.placement)


def test_a_pod_that_is_none_counts_as_without_gpus() -> None:
    """What no API server hands out is left out."""
    item = gpu_pod("a")
    item["spec"]["nodeSelector"] = {"a": 1}

    assert kept(item).state.gpu is None


REQUIRED: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}
PLACEMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "affinity": ({"affinity": {"podAffinity": REQUIRED}}, "a required pod affinity"),
    "anti": ({"affinity": {"podAntiAffinity": REQUIRED}}, "a required pod anti-affinity"),
    "spread": (
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
        "a hard topology spread",
    ),
    "volumes": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        "volumes that are bound to places",
    ),
    "soft spread": ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ""),
    "ports": (
        {"initContainers": [{"name": "i", "ports": [{"hostPort": 1}]}]},
        "host ports",
    ),
}


@pytest.mark.parametrize(("spec", "expected"), PLACEMENTS.values(), ids=PLACEMENTS)
def test_what_else_decides_the_place_is_named(spec: dict[str, Any], expected: str) -> None:
    """It is not worked out, and so whoever has it counts as fitting nowhere."""
    assert expected == kept(gpu_pod("a", **spec)).state.placement


def asking(name: str, **more: Any) -> dict[str, Any]:
    limits = {names.GPUSHARE_MEMORY: more.pop("units", "2"), "cpu": "1"}
    return {"name": name, "resources": {"limits": limits}, **more}


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "sum": ({"containers": [asking("a"), asking("b")]}, {names.GPUSHARE_MEMORY: 4}),
    "init containers run alone": (
        {"initContainers": [asking("i", units="3")], "containers": [asking("a")]},
        {names.GPUSHARE_MEMORY: 3},
    ),
    "sidecars stay": (
        {
            "initContainers": [asking("s", restartPolicy="Always"), asking("i", units="3")],
            "containers": [asking("a")],
        },
        {names.GPUSHARE_MEMORY: 5},
    ),
    "what nobody can read": ({"containers": [asking("a", units="x")]}, {}),
    "nothing of a GPU": ({"containers": [{"name": "a"}]}, {}),
}


@pytest.mark.parametrize(("spec", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_of_requests_those_of_gpus_are_kept(spec: dict[str, Any], expected: dict[str, int]) -> None:
    """As the scheduler adds them up, beside one of the node's pods."""
    assert {"pods": 1, **expected} == kept({**pod("a"), "spec": spec}).state.requests


def test_nodes_without_gpus_are_of_no_concern() -> None:
    """Nor are those that cannot be read."""
    plain = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}
    broken = {"metadata": {"name": "n", "labels": {"a": 1}}}

    assert ("n", None) == project_node(plain, Units(), Interner())
    assert ("n", None) == project_node(broken, Units(), Interner())


def test_of_a_gpu_node_room_and_taints_are_kept() -> None:
    """And whether it takes anybody at all."""
    node = {
        "metadata": {"name": "n", "labels": {"pool": "x"}},
        "spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": {names.GPUSHARE_MEMORY: "15", "pods": "110", "cpu": "4"}},
    }
    room = project_node(node, Units(), Interner())[1]

    assert room is not None
    assert {names.GPUSHARE_MEMORY: 15, "pods": 110} == room.allocatable
    assert ({"key": "a", "effect": "NoSchedule"},) == room.taints
    assert room.unschedulable


@pytest.mark.parametrize("pods", [{}, {"pods": "many"}])
def test_a_node_that_does_not_say_for_how_many_pods_has_none(pods: dict[str, str]) -> None:
    """What nobody can read is not guessed at."""
    offered = {names.GPUSHARE_MEMORY: "15", **pods}
    room = project_node(
        {"metadata": {"name": "n"}, "status": {"allocatable": offered}}, Units(), Interner()
    )[1]

    assert room is not None
    assert {names.GPUSHARE_MEMORY: 15} == room.allocatable


def owner(**more: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": "u", "namespace": "team", "name": "w", **more.pop("metadata", {})},
        "spec": {"replicas": 1, **more},
    }


CONTROLLED = {"apiVersion": "apps/v1", "kind": "X", "name": "x", "uid": "x", "controller": True}


def test_old_replica_sets_own_nobody() -> None:
    """One that is controlled, wants none and has none is forgotten; one that has pods is not."""
    item = owner(metadata={"ownerReferences": [CONTROLLED]}, replicas=0)

    assert project_owner(item, DEPLOYMENTS, Interner())[1] is None
    assert (
        project_owner({**item, "status": {"replicas": 1}}, DEPLOYMENTS, Interner())[1] is not None
    )


def test_the_next_pod_is_known_by_its_template() -> None:
    """Where it asks for a GPU."""
    template = {"spec": gpu_pod("a")["spec"]}
    _, found = project_owner(owner(template=template), DEPLOYMENTS, Interner())
    _, plain = project_owner(owner(template={"spec": pod("a")["spec"]}), DEPLOYMENTS, Interner())

    assert found is not None
    assert found.template is not None
    assert ("team", "w", 3) == (
        found.template.namespace,
        found.template.name,
        found.template.requests[names.GPUSHARE_MEMORY],
    )
    assert plain is not None
    assert plain.template is None


def test_of_an_owners_words_those_about_idleness_are_kept() -> None:
    """What is too long is kept as unreadable."""
    said = {names.WAKE: "manual", names.RELEASED: "x" * (MOST_CHARACTERS + 1), names.MEMORY: "1"}
    _, found = project_owner(owner(metadata={"annotations": said}), DEPLOYMENTS, Interner())

    assert found is not None
    assert {names.WAKE: "manual", names.RELEASED: UNREADABLE} == found.owner.annotations


def test_a_scaler_without_a_kind_means_a_deployment() -> None:
    """As KEDA has it."""
    item = {
        "metadata": {"uid": "u", "namespace": "team", "name": "s"},
        "spec": {"scaleTargetRef": {"name": "w"}},
    }

    assert ("u", (("team", "apps", "Deployment", "w"), "s")) == project_scaler(item)


@pytest.mark.parametrize(
    ("phase", "expected"), [("Running", ("node", "10.0.0.1")), ("Pending", None)]
)
def test_agents_that_run_have_an_address(phase: str, expected: tuple[str, str] | None) -> None:
    """Others are not asked."""
    item = {
        "metadata": {"uid": "u"},
        "spec": {"nodeName": "node"},
        "status": {"phase": phase, "podIP": "10.0.0.1"},
    }

    assert ("u", expected) == project_agent(item)


def budget(selector: Any, allowed: int = 1, generation: int = 1) -> BudgetProjection:
    return project_budget(
        {
            "metadata": {"uid": "b", "namespace": "team", "generation": 1},
            "spec": {"selector": selector},
            "status": {"disruptionsAllowed": allowed, "observedGeneration": generation},
        }
    )[1]


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]}


SELECTORS: dict[str, tuple[Any, bool]] = {
    "labels": ({"matchLabels": {"app": "w"}}, True),
    "other labels": ({"matchLabels": {"app": "x"}}, False),
    "everybody": ({}, True),
    "nobody": (None, False),
    "in": (expression("In", "v", "w"), True),
    "not in": (expression("NotIn", "w"), False),
    "exists": (expression("Exists"), True),
    "absent": (expression("DoesNotExist"), False),
    "too much": ({"matchLabels": {f"{n}": "x" for n in range(MOST_REQUIREMENTS + 1)}}, True),
}


@pytest.mark.parametrize(("selector", "covered"), SELECTORS.values(), ids=SELECTORS)
def test_a_budget_covers_whom_it_selects(selector: Any, covered: bool) -> None:  # noqa: FBT001 (a parameter)
    """The least of what all of them allow counts."""
    pods = [{"app": "w"}]

    assert (1 if covered else None) == least_allowed([budget(selector)], pods)


def test_a_pod_with_too_many_labels_is_covered_by_every_budget() -> None:
    """What was not kept of them may be what a budget selects."""
    assert 1 == least_allowed([budget({"matchLabels": {"app": "x"}})], [None])
    assert None is least_allowed([budget(None)], [None])


def test_a_budget_that_does_not_say_yet_allows_none() -> None:
    """Its controller has not seen it, or says nothing readable."""
    assert (0, 0) == (budget({}, generation=0).allowed, project_budget({})[1].allowed)
