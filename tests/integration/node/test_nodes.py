"""
The node itself: what it registers, and what is left when it goes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpufence.cards import read_cards
from simulator.node import Dialect, NodeOptions, Sharing, SimulatedNode, Taint
from simulator.node.errors import SetupError
from simulator.nvml.state import State
from tests.integration.node.cluster import Ground, pod, workload
from tests.support.observing import eventually, processes_naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulator.controlplane import ControlPlane


def read_node(plane: ControlPlane, name: str) -> Any:
    done = plane.kubectl("get", "node", name, "-o", "json", "--ignore-not-found")
    return json.loads(done.stdout) if done.stdout else None


def test_a_node_registers_all_it_has(control_plane: ControlPlane, node: SimulatedNode) -> None:
    """
    The Node offers the dialect's resources, is ready, untainted, and describes its cards.
    """
    found = read_node(control_plane, node.name)
    cards = read_cards(found["metadata"]["annotations"]["gpufence.io/cards"]).cards
    ready = {one["type"]: one["status"] for one in found["status"]["conditions"]}["Ready"]

    assert ("30", "2") == (
        found["status"]["allocatable"]["aliyun.com/gpu-mem"],
        found["status"]["capacity"]["aliyun.com/gpu-count"],
    )
    assert [card.uuid for card in node.state.cards] == [card.uuid for card in cards]
    assert ("True", "15360") == (ready, found["metadata"]["labels"]["nvidia.com/gpu.memory"])
    assert "taints" not in found["spec"]


def test_a_node_keeps_its_lease(control_plane: ControlPlane) -> None:
    """
    The lease is renewed with every heartbeat.
    """

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
    """
    A Node that somebody deletes is registered anew with a later heartbeat.
    """
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(), name="node-lost", heartbeat_seconds=0.1
    )
    with SimulatedNode(options):
        control_plane.kubectl("delete", "node", "node-lost")
        control_plane.kubectl("delete", "lease", "node-lost", "-n", "kube-node-lease")

        assert eventually(lambda: read_node(control_plane, "node-lost") is not None)


def test_a_node_on_its_own_keeps_the_taint_and_its_object(control_plane: ControlPlane) -> None:
    """
    With nothing but its own identity a node can neither lift its taint nor delete itself.
    """
    options = NodeOptions(
        kubeconfig=control_plane.node_kubeconfig("node-own"),
        name="node-own",
        cards="A100-40:1g.5gb+1g.5gb,T4",
        sharing=Sharing(Dialect.TIME_SLICING, replicas=3),
        taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"),),
    )
    with SimulatedNode(options):
        found = read_node(control_plane, "node-own")
    after = read_node(control_plane, "node-own")
    ready = {one["type"]: one["status"] for one in after["status"]["conditions"]}["Ready"]
    control_plane.kubectl("delete", "node", "node-own")

    assert {"nvidia.com/gpu", "node.kubernetes.io/not-ready"} == {
        taint["key"] for taint in found["spec"]["taints"]
    }
    assert ("3", "2", "False") == (
        found["status"]["capacity"]["nvidia.com/gpu"],
        found["status"]["capacity"]["nvidia.com/mig-1g.5gb"],
        ready,
    )


def test_an_existing_node_is_taken_over(control_plane: ControlPlane) -> None:
    """
    A Node of that name, left by an earlier run, gets the new resources and labels.
    """
    own = control_plane.node_kubeconfig("node-again")
    with SimulatedNode(NodeOptions(kubeconfig=own, name="node-again")):
        pass
    options = NodeOptions(
        kubeconfig=own,
        admin_kubeconfig=control_plane.kubeconfig(),
        name="node-again",
        cards="T4,T4,T4",
        labels={"round": "second"},
    )
    with SimulatedNode(options):
        found = read_node(control_plane, "node-again")
    after = read_node(control_plane, "node-again")

    assert ("3", "second", None) == (
        found["status"]["capacity"]["nvidia.com/gpu"],
        found["metadata"]["labels"]["round"],
        after,
    )


def test_nodes_side_by_side_have_cards_of_their_own(
    control_plane: ControlPlane, namespace: str, node: SimulatedNode
) -> None:
    """
    Two nodes in one process run their own pods on their own cards.
    """
    options = NodeOptions(kubeconfig=control_plane.kubeconfig(), name="node-other", cards="T4,T4")
    with SimulatedNode(options) as other:
        ground = Ground(control_plane, namespace, other)
        ground.place(pod("there", workload("hold 1Gi")))
        ground.wait_for_log("there", "script done")

        assert ([], 1) == (node.pids(namespace, "there"), len(other.pids(namespace, "there")))
        assert set() == {card.uuid for card in node.state.cards} & {
            card.uuid for card in other.state.cards
        }


def test_a_node_that_stops_ends_its_pods_and_says_so(
    control_plane: ControlPlane, namespace: str
) -> None:
    """
    Leaving the block kills even deaf processes, removes all files, and reports the pods as failed.
    """
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(), name="node-stops", stop_seconds=0.5
    )
    with SimulatedNode(options) as stopping:
        ground = Ground(control_plane, namespace, stopping)
        ground.place(pod("deaf", workload("hold 1Gi", "--on-term", "ignore")))
        ground.wait_for_log("deaf", "script done")
        (pid,) = stopping.pids(namespace, "deaf")
        folder = stopping.folder
    status = ground.status("deaf")

    assert (False, False) == (Path(f"/proc/{pid}").exists(), folder.exists())
    assert ("Failed", "Terminated") == (status["phase"], status["reason"])


def test_state_and_proc_can_be_named(control_plane: ControlPlane, tmp_path: Path) -> None:
    """
    A state file that is there is used with its cards, and stays; the named /proc is left empty.
    """
    State.create(tmp_path / "cards", "H100", seed="mine")
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(),
        name="node-files",
        state=tmp_path / "cards",
        proc=tmp_path / "proc",
    )
    with SimulatedNode(options) as named:
        found = read_node(control_plane, "node-files")
        shown = (named.proc_root / "self").is_symlink()

    assert ("1", True) == (found["status"]["capacity"]["nvidia.com/gpu"], shown)
    assert ([], True) == (list((tmp_path / "proc").iterdir()), (tmp_path / "cards").exists())


def test_other_cards_than_those_of_the_state_are_refused(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    """
    Naming cards that the state file has not is a mistake that is said before anything starts.
    """
    State.create(tmp_path / "cards", "H100")
    options = NodeOptions(
        kubeconfig=control_plane.kubeconfig(),
        name="node-files",
        state=tmp_path / "cards",
        cards="T4",
    )
    with pytest.raises(SetupError, match="holds other cards"), SimulatedNode(options):
        raise AssertionError("it must not start")


@pytest.fixture
def program(
    control_plane: ControlPlane, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """
    The command line's node, and what it prints for the shell.
    """
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "simulator", "node", "--name", "node-program"),
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
    """
    However the program ends, also by a kill, its pods' processes and all its files are gone.
    """
    running, exported = program
    name = f"job-{number.name.lower()}"
    wanted = pod(name, workload("hold 1Gi; fork 1", "--on-term", "ignore"), nodeName="node-program")
    control_plane.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(wanted))
    state = State.open(Path(exported["GPUFENCE_SIMULATOR_STATE"]))
    assert eventually(lambda: len(state.cards[0].uses) == 2)
    running.send_signal(number)
    running.wait(60)

    assert eventually(lambda: not state.cards[0].uses)
    assert eventually(lambda: not list(tmp_path.glob("gpufence-node-*")))
    assert eventually(lambda: not processes_naming(str(tmp_path)))


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    """
    A kubeconfig that is not there ends the command with a message and leaves nothing behind.
    """
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
