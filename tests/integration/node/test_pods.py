"""Pods on simulated nodes, some by the real scheduler."""

import re
import time
from pathlib import Path

from gpufence.quantity import GIB, MIB
from kube import ClientSettings, connect
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from tests.support.agent.node_site import Ground, nvml_processes, pod, workload
from tests.support.observing import eventually

KEY = "gpufence.io/sitecustomize"
GPU = {"limits": {"aliyun.com/gpu-mem": "3"}}


def test_a_container_that_fails_is_restarted_with_pauses(ground: Ground) -> None:
    """Under OnFailure a failing container comes again and again, each time after a longer pause."""
    ground.place(pod("crash", workload("exit 3"), restartPolicy="OnFailure"))

    def restarts() -> int:
        statuses = ground.status("crash").get("containerStatuses", [])
        return sum(one["restartCount"] for one in statuses)

    assert eventually(lambda: restarts() >= 3)
    (container,) = ground.status("crash")["containerStatuses"]
    assert 3 == container["lastState"]["terminated"]["exitCode"]


def test_out_of_memory_fails_the_pod_with_its_message(ground: Ground) -> None:
    """A process that dies of the card's lack of memory leaves its words in the pod's status."""
    ground.place(pod("greedy", workload("hold 99Gi"), restartPolicy="Never"))
    ground.wait_for_phase("greedy", "Failed")
    (container,) = ground.status("greedy")["containerStatuses"]

    assert "out of memory" in container["state"]["terminated"]["message"]


def test_a_missing_object_keeps_a_container_waiting(ground: Ground) -> None:
    """Without its Secret a container shows CreateContainerConfigError; with it, it starts."""
    source = {"secretKeyRef": {"name": "late", "key": "size"}}
    ground.place(
        pod("waits", workload("hold $(SIZE)", env=[{"name": "SIZE", "valueFrom": source}]))
    )

    def reason() -> str:
        statuses = ground.status("waits").get("containerStatuses", [])
        return "".join(one["state"].get("waiting", {}).get("reason", "") for one in statuses)

    assert eventually(lambda: reason() == "CreateContainerConfigError")
    ground.plane.kubectl(
        "create", "secret", "generic", "late", "--from-literal=size=1Gi", "-n", ground.namespace
    )
    ground.wait_for_phase("waits", "Running")
    ground.wait_for_log("waits", "hold 1Gi")


def test_an_annotation_mounted_as_a_module_runs_before_the_program(ground: Ground) -> None:
    """An annotation mounted as sitecustomize.py in PYTHONPATH's folder runs at start-up."""
    item = {
        "path": "sitecustomize.py",
        "fieldRef": {"fieldPath": f"metadata.annotations['{KEY}']"},
    }
    mount = {
        "name": "hook",
        "mountPath": "/gpufence/sitecustomize.py",
        "subPath": "sitecustomize.py",
    }
    container = workload(
        "hold 1Mi",
        env=[{"name": "PYTHONPATH", "value": "/gpufence"}],
        volumeMounts=[mount],
    )
    ground.place(
        pod(
            "hooked",
            container,
            volumes=[{"name": "hook", "downwardAPI": {"items": [item]}}],
            annotations={KEY: "print('the hook ran', flush=True)"},
        )
    )
    ground.wait_for_log("hooked", "script done")

    assert ground.node.log(ground.namespace, "hooked", "main").startswith("the hook ran\n")


def test_a_command_other_than_the_workload_is_refused(ground: Ground) -> None:
    """A pod with a command of its own fails with the reason and is not run."""
    container = {"name": "main", "image": "busybox", "command": ["touch", "/tmp/never"]}
    ground.place(pod("foreign", container))
    ground.wait_for_phase("foreign", "Failed")

    assert "touch /tmp/never is no simulator workload" in ground.status("foreign")["message"]


def test_the_grace_of_a_deletion_is_honoured(ground: Ground) -> None:
    """A process that ignores SIGTERM is killed after the grace, and its pod leaves the API."""
    ground.place(pod("stubborn", workload("hold 1Gi", "--on-term", "ignore", resources=GPU)))
    ground.wait_for_log("stubborn", "script done")
    (pid,) = ground.node.pids(ground.namespace, "stubborn")
    begin = time.monotonic()
    ground.delete("stubborn", "--grace-period=3", "--wait=false")
    alive = Path(f"/proc/{pid}").exists()
    gone = eventually(lambda: ground.get("stubborn") is None)
    seconds = time.monotonic() - begin

    assert (True, True) == (alive, gone)
    assert 3 <= seconds < 20  # of the 30 that are usual
    assert not Path(f"/proc/{pid}").exists()


def test_a_pod_that_is_forced_out_ends_as_well(ground: Ground) -> None:
    """A pod that was removed from the API with force is ended on the node, too."""
    ground.place(pod("forced", workload("hold 1Gi")))
    ground.wait_for_log("forced", "script done")
    (pid,) = ground.node.pids(ground.namespace, "forced")
    ground.delete("forced", "--force", "--grace-period=0")

    assert eventually(lambda: not Path(f"/proc/{pid}").exists())


def test_all_processes_of_a_pod_have_its_cgroup(ground: Ground) -> None:
    """Forked processes carry their container's cgroup line, and leave the folder with the pod."""
    ground.place(pod("forking", workload("hold 100Mi; fork 2")))
    ground.wait_for_log("forking", "fork 2")
    assert eventually(lambda: len(ground.node.pids(ground.namespace, "forking")) == 3)
    pids = ground.node.pids(ground.namespace, "forking")
    root = ground.node.proc_root
    assert eventually(lambda: all((root / str(pid) / "stat").exists() for pid in pids))
    found = ground.get("forking")
    assert found is not None
    uid = found["metadata"]["uid"].replace("-", "_")
    (container,) = found["status"]["containerStatuses"]
    scope = container["containerID"].removeprefix("containerd://")
    quality = "kubepods-besteffort"

    assert {
        f"0::/kubepods.slice/{quality}.slice/{quality}-pod{uid}.slice/cri-containerd-{scope}.scope\n"
    } == {(root / str(pid) / "cgroup").read_text() for pid in pids}
    ground.delete("forking")
    assert not any((root / str(pid)).exists() for pid in pids)


def test_pods_spread_over_the_cards(ground: Ground) -> None:
    """Each pod gets the card of which least is declared, and finds it in its environment."""
    for name in ("one", "two"):
        ground.place(pod(name, workload("hold 2Gi", resources=GPU)))
        ground.wait_for_log(name, "script done")
    cards = [
        [use.pid for use in card.uses if use.memory == 2 * GIB] for card in ground.node.state.cards
    ]

    assert (
        ground.node.pids(ground.namespace, "one"),
        ground.node.pids(ground.namespace, "two"),
    ) == (cards[0], cards[1])


def test_pods_outlive_an_outage_of_the_api_server(ground: Ground) -> None:
    """While the API server is away pods run on; what happened to them is told afterwards."""
    ground.place(pod("lasting", workload("hold 1Gi")))
    ground.place(pod("short", workload("after 4s hold 1Mi; exit 0"), restartPolicy="Never"))
    ground.wait_for_log("lasting", "script done")
    ground.wait_for_phase("short", "Running")
    before = ground.node.pids(ground.namespace, "lasting")
    ground.plane.stop_api_server()
    try:
        ended = eventually(lambda: not ground.node.pids(ground.namespace, "short"))
    finally:
        ground.plane.start_api_server()

    assert ended
    ground.wait_for_phase("short", "Succeeded")
    assert before == ground.node.pids(ground.namespace, "lasting")


def test_a_pod_goes_from_the_scheduler_to_the_card_and_away(
    full_control_plane: ControlPlane, full_namespace: str
) -> None:
    """A pod is scheduled, runs with its annotation's value, is listed by NVML, and frees memory."""
    options = NodeOptions(
        kubeconfig=full_control_plane.node_kubeconfig("node-a"),
        cards="T4,T4",
    )
    settings = ClientSettings(kubeconfig=str(full_control_plane.kubeconfig()))
    with SimulatedNode(options) as node, connect(settings) as admin:
        ground = Ground(full_control_plane, full_namespace, node, admin)
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
