"""The whole way: kube-scheduler, the node, its cards, and back."""

import re

from gpufence.quantity import GIB, MIB
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support.node_ground import Ground, nvml_processes, pod, workload
from tests.support.observing import eventually


def test_a_pod_goes_from_the_scheduler_to_the_card_and_away(
    full_control_plane: ControlPlane, full_namespace: str
) -> None:
    """
    A pod that asks for gpushare memory is scheduled, runs with its annotation's value in its
    environment, is listed by NVML, and frees its memory when it is deleted.
    """
    options = NodeOptions(
        kubeconfig=full_control_plane.node_kubeconfig("node-a"),
        cards="T4,T4",
    )
    with SimulatedNode(options) as node:
        ground = Ground(full_control_plane, full_namespace, node)
        fraction = {
            "name": "XLA_PYTHON_CLIENT_MEM_FRACTION",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['example.com/part']"}},
        }
        trainer = workload(
            *("hold $(SIZE)", "--framework", "jax", "--context", "400Mi"),
            env=[{"name": "SIZE", "value": "1Gi"}, fraction],
            resources={"limits": {"aliyun.com/gpu-mem": "3"}},
        )
        ground.create(pod("trainer", trainer, annotations={"example.com/part": "0.1"}))
        ground.create(pod("job", workload("hold 2Gi; exit 0"), restartPolicy="Never"))
        ground.wait_for_phase("trainer", "Running")
        ground.wait_for_log("trainer", "script done")
        (pid,) = node.pids(full_namespace, "trainer")

        said = re.search(
            r"cap (\d+) MiB \(memory fraction 0\.1\)", node.log(full_namespace, "trainer", "main")
        )
        card, used = nvml_processes(node.state.path)[pid]

        assert said is not None
        assert (0, int(said[1]) + 400) == (card, used // MIB)
        found = ground.get("trainer")
        assert found is not None
        assert "node-a" == found["spec"]["nodeName"]

        ground.wait_for_phase("job", "Succeeded")
        ground.delete("trainer")
        freed = eventually(lambda: node.state.cards[0].room.taken < GIB)

        assert freed
        assert {} == nvml_processes(node.state.path)
