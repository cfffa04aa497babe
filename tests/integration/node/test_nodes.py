"""The node itself: what it registers, and what is left when it goes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube import Client
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from simulator.nvml.state import State
from tests.support.agent.node_site import Ground, pod, workload
from tests.support.observing import eventually, processes_naming


def read_node(plane: ControlPlane, name: str) -> Any:
    done = plane.kubectl("get", "node", name, "-o", "json", "--ignore-not-found")
    return json.loads(done.stdout) if done.stdout else None


def test_a_node_registers_all_it_has(control_plane: ControlPlane, node: SimulatedNode) -> None:
    """The Node offers its cards' memory, is ready and untainted, and its labels describe a card."""
    found = read_node(control_plane, node.name)
    ready = {one["type"]: one["status"] for one in found["status"]["conditions"]}["Ready"]

    assert ("30", "2") == (
        found["status"]["allocatable"]["aliyun.com/gpu-mem"],
        found["status"]["capacity"]["aliyun.com/gpu-count"],
    )
    assert ("True", "15360") == (ready, found["metadata"]["labels"]["nvidia.com/gpu.memory"])
    assert "taints" not in found["spec"]


def test_a_node_keeps_its_lease(control_plane: ControlPlane) -> None:
    """The lease is renewed with every heartbeat."""

    def renewed() -> str:
        words = ("get", "lease", "node-beat", "-n", "kube-node-lease")
        return control_plane.kubectl(*words, "-o", "jsonpath={.spec.renewTime}").stdout

    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(), name="node-beat", heartbeat_seconds=0.1
    )
    with SimulatedNode(options):
        first = renewed()

        assert eventually(lambda: renewed() > first)


def test_a_node_that_was_deleted_comes_again(control_plane: ControlPlane) -> None:
    """A Node that somebody deletes is registered anew with a later heartbeat."""
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(), name="node-lost", heartbeat_seconds=0.1
    )
    with SimulatedNode(options):
        control_plane.kubectl("delete", "node", "node-lost")
        control_plane.kubectl("delete", "lease", "node-lost", "-n", "kube-node-lease")

        assert eventually(lambda: read_node(control_plane, "node-lost") is not None)


def test_a_node_on_its_own_keeps_the_taint_and_its_object(control_plane: ControlPlane) -> None:
    """
    With nothing but its own identity a node can neither lift its taint nor delete itself; the next
    one of that name, with an administrator's help, takes the object over and away.
    """
    own = control_plane.node_kubeconfig("node-own")
    with SimulatedNode(NodeOptions(kubeconfig=own, name="node-own")):
        alone = read_node(control_plane, "node-own")
    left = read_node(control_plane, "node-own")
    options = NodeOptions(
        kubeconfig=own,
        admin_kubeconfig=control_plane.kubeconfig(),
        name="node-own",
        cards="T4,T4,T4",
    )
    with SimulatedNode(options):
        again = read_node(control_plane, "node-own")

    assert ["node.kubernetes.io/not-ready"] == [taint["key"] for taint in alone["spec"]["taints"]]
    assert "False" == left["status"]["conditions"][0]["status"]
    assert ("3", "3") == (
        again["status"]["capacity"]["aliyun.com/gpu-count"],
        again["metadata"]["labels"]["nvidia.com/gpu.count"],
    )
    assert read_node(control_plane, "node-own") is None


def test_nodes_side_by_side_have_cards_of_their_own(
    control_plane: ControlPlane, namespace: str, node: SimulatedNode, admin: Client
) -> None:
    """Two nodes in one process run their own pods on their own cards."""
    options = NodeOptions(kubeconfig=control_plane.kubeconfig(), name="node-other", cards="T4,T4")
    with SimulatedNode(options) as other:
        ground = Ground(control_plane, namespace, other, admin)
        ground.place(pod("there", workload("hold 1Gi")))
        ground.wait_for_log("there", "script done")

        assert ([], 1) == (node.pids(namespace, "there"), len(other.pids(namespace, "there")))
        assert set() == {card.uuid for card in node.state.cards} & {
            card.uuid for card in other.state.cards
        }


def test_a_node_that_stops_ends_its_pods_and_says_so(
    control_plane: ControlPlane, namespace: str, admin: Client
) -> None:
    """Leaving the block kills deaf processes too, removes all files, and reports pods as failed."""
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(), name="node-stops", stop_seconds=0.5
    )
    with SimulatedNode(options) as stopping:
        ground = Ground(control_plane, namespace, stopping, admin)
        ground.place(pod("deaf", workload("hold 1Gi", "--on-term", "ignore")))
        ground.wait_for_log("deaf", "script done")
        (pid,) = stopping.pids(namespace, "deaf")
        folder = stopping.folder
    status = ground.status("deaf")

    assert (False, False) == (Path(f"/proc/{pid}").exists(), folder.exists())
    assert ("Failed", "Terminated") == (status["phase"], status["reason"])


@pytest.fixture
def program(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The command line's node, and what it prints; pods of one killed go on at its namesake."""
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "simulator", "node", "--name", f"node-{namespace}"),
            *("--kubeconfig", str(control_plane.kubeconfig())),
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline().removeprefix("export ").strip() for _ in range(3)]
        try:
            yield running, dict(line.split("=", 1) for line in lines)
        finally:
            running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_program_leaves_nothing_behind(
    program: tuple[subprocess.Popen[str], dict[str, str]],
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    """However the program ends, also by a kill, its pods' processes and all its files are gone."""
    running, exported = program
    held = workload("hold 1Gi; fork 1", "--on-term", "ignore")
    wanted = pod("job", held, nodeName=f"node-{namespace}")
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(wanted))
    state = State.open(Path(exported["GPUFENCE_SIMULATOR_STATE"]))
    assert eventually(lambda: len(state.cards[0].uses) == 2)
    running.send_signal(number)
    running.wait(60)

    assert eventually(lambda: not state.cards[0].uses)
    assert eventually(lambda: not list(tmp_path.glob("gpufence-node-*")))
    assert eventually(lambda: not processes_naming(str(tmp_path)))


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    """A kubeconfig that is not there ends the command with a message and leaves nothing behind."""
    missing = str(tmp_path / "none")
    done = subprocess.run(
        [sys.executable, "-m", "simulator", "node", "--kubeconfig", missing],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (1, []) == (done.returncode, list(tmp_path.iterdir()))
    assert missing in done.stderr
