"""
Systems that show a container its limit as the card's memory: fractions would apply twice there.
"""

from typing import Any

import pytest

from gpufence import names
from gpufence.quantity import GIB
from tests.support.builders import card, container, gpushare, node, pod
from tests.support.rewriting import POLICY, environment, gpu_node, rewritten
from webhook.fleet import Fleet
from webhook.rewrite.binding import exact_values

SHARED = {names.KAI_MEMORY: "4096"}
VOLUME = {"name": "kai-resource-isolator-vgpu", "hostPath": {"path": "/usr/local/vgpu"}}
LIMIT = {"name": names.CUDA_LIMIT, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}


def shared(item: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Build a pod that KAI gives a share of a card."""
    made = pod(item or container("main"), annotations={**SHARED, **changes.pop("said", {})})
    made["spec"].update(changes)
    return made


@pytest.mark.parametrize(
    "item",
    [
        shared(volumes=[VOLUME]),
        shared(container("main") | {"env": [LIMIT]}),
        shared(said={names.KAI_ISOLATE: "true"}),
        shared(said={"nvidia.com/container.main.gpu-memory.limit": "4Gi"}),
        shared(said={"nvidia.com/container.main.gpu-memory.request": "4Gi"}),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "cgpu"}),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "core_mem"}),
        pod(container("main", **{names.GPUSHARE_MEMORY: "3", names.GPUSHARE_CORES: "20"})),
    ],
)
def test_an_isolated_pod_is_told_nothing(item: dict[str, Any]) -> None:
    """
    Where the isolator shows the limit as the card, no variable is set, as with HAMi's library.
    """
    result, said = rewritten(item)

    assert "capped by its own library, so nothing is injected" in said.summary
    assert item["spec"]["containers"] == result["spec"]["containers"]


@pytest.mark.parametrize(
    "item",
    [
        shared(),
        shared(said={names.KAI_ISOLATE: "false"}, volumes=[VOLUME]),
        shared(volumes=[{"name": "data", "emptyDir": {}}]),
        pod(gpushare("main", 3), nodeSelector={names.ACK_SCHEDULE: "share"}),
    ],
)
def test_a_pod_that_nothing_isolates_is_told(item: dict[str, Any]) -> None:
    """A share of a card without an isolator is told like any other."""
    _, said = rewritten(item)

    assert "variables say main" in said.summary


@pytest.mark.parametrize("labels", [{names.ACK_SCHEDULE: "cgpu"}, {names.ACK_CGPU: "true"}])
def test_a_node_may_isolate(labels: dict[str, str]) -> None:
    """Where all nodes that a pod may meet isolate memory, it is told nothing."""
    manifest = node()
    manifest["metadata"]["labels"] = {**manifest["metadata"].get("labels", {}), **labels}
    _, said = rewritten(pod(gpushare("main", 3)), fleet=Fleet([gpu_node(manifest)]))

    assert "capped by its own library" in said.summary


def test_cores_alone_declare_no_memory() -> None:
    """A share of a card's cores is no amount of memory."""
    _, said = rewritten(pod(container("main", **{names.GPUSHARE_CORES: "20"})))

    assert said.summary.startswith("not fenced: no container asks for GPU memory")


@pytest.mark.parametrize(
    "said",
    [{names.KAI_MEMORY: "4096"}, {names.KAI_FRACTION: "0.25"}],
    ids=["an amount", "a share"],
)
def test_a_fraction_does_not_apply_twice_where_the_driver_holds_the_pod(
    said: dict[str, str],
) -> None:
    """
    A pod that was told its share and then gets KAI's word for the driver sees its limit as the
    card: at binding it is told a fraction of that.
    """
    where = gpu_node(node(card(memory_bytes=16 * GIB), name="a"))
    bound = rewritten(pod(container("main"), annotations=said), fleet=Fleet([where]))[0]
    before = environment(bound)[names.XLA_FRACTION]
    bound["metadata"]["annotations"]["nvidia.com/container.main.gpu-memory.limit"] = "4Gi"
    bound["metadata"]["annotations"] |= exact_values(bound, where, POLICY)

    assert ("0.175000", "0.700000") == (before, environment(bound)[names.XLA_FRACTION])
    assert str(4 * GIB * 7 // 10) == environment(bound)[names.CUPY_LIMIT]


DRIVEN = "nvidia.com/container.main"
BY_BINDER = {f"{DRIVEN}{names.KAI_GIVEN}": "GPU-1"}
UP_TO_8 = {f"{DRIVEN}{names.KAI_REQUEST}": "4Gi", f"{DRIVEN}{names.KAI_LIMIT}": "8Gi"}


@pytest.mark.parametrize(
    ("said", "by_binder", "limit"),
    [
        ({names.KAI_FRACTION: "0.25"}, {**UP_TO_8, **BY_BINDER}, 8),
        ({names.KAI_FRACTION: "0.25"}, UP_TO_8, 4),
        ({names.KAI_MEMORY: "4096"}, {f"{DRIVEN}{names.KAI_REQUEST}": "3Gi", **BY_BINDER}, 3),
    ],
    ids=["a limit that KAI's binder has seen", "a limit of its own", "a smaller request"],
)
def test_what_a_pod_was_told_becomes_a_part_of_what_the_driver_holds_it_to(
    said: dict[str, str], by_binder: dict[str, str], limit: int
) -> None:
    """
    At binding the limit is the card that the container sees, and it may raise what KAI has counted
    only where KAI's binder has given the pod its cards.
    """
    where = gpu_node(node(card(memory_bytes=16 * GIB), name="a"))
    bound = rewritten(pod(container("main"), annotations=said), fleet=Fleet([where]))[0]
    bound["metadata"]["annotations"] |= by_binder
    bound["metadata"]["annotations"] |= exact_values(bound, where, POLICY)

    assert "0.700000" == environment(bound)[names.XLA_FRACTION]
    assert str(limit * GIB * 7 // 10) == environment(bound)[names.CUPY_LIMIT]


def test_a_pod_that_says_nothing_else_is_known_by_what_the_driver_holds_it_to() -> None:
    """KAI's own way to ask for memory in that mode is a declaration like any other."""
    _, said = rewritten(pod(container("main"), annotations=UP_TO_8))

    assert ("kai", 4 * GIB) == (said.plan.dialect, said.plan.limit_bytes)
    assert "capped by its own library" in said.summary


def test_nobody_but_kais_binder_gives_a_pod_its_cards() -> None:
    """What would confirm a limit is taken from a pod that is created with it."""
    made, said = rewritten(pod(container("main"), annotations={**UP_TO_8, **BY_BINDER}))

    assert BY_BINDER.keys().isdisjoint(made["metadata"]["annotations"])
    assert UP_TO_8.items() <= made["metadata"]["annotations"].items()
    assert any(names.KAI_GIVEN in each for each in said.warnings)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({names.KAI_CONTAINER: "main"}, "kai: limit 4096Mi"),
        ({names.KAI_CONTAINER: "gone"}, "gone"),
        ({f"{names.KAI_OF_CONTAINER}gone{names.KAI_LIMIT}": "4Gi"}, "gone"),
    ],
)
def test_the_container_of_a_share_is_the_one_that_is_named(said: dict[str, str], told: str) -> None:
    """One that the pod does not have is a mistake, which the summary names."""
    _, rewrite = rewritten(shared(said=said))

    assert told in rewrite.summary


def test_a_share_of_two_containers_is_a_mistake() -> None:
    """The pod names one, and the keys of its driver another."""
    said = {names.KAI_CONTAINER: "side", f"{names.KAI_OF_CONTAINER}main{names.KAI_LIMIT}": "4Gi"}
    item = pod(container("main"), container("side"), annotations={**SHARED, **said})
    _, rewrite = rewritten(item)

    assert names.KAI_CONTAINER in rewrite.summary
