"""
Systems that show a container its limit as the card's memory: fractions would apply twice there.
"""

from typing import Any

import pytest

from gpufence import names
from tests.support.builders import container, gpushare, node, pod
from tests.support.rewriting import gpu_node, rewritten
from webhook.fleet import Fleet

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

    assert "frameworks are told main" in said.summary


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
