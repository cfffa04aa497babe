"""
Start all of a node and its control plane, in the namespaces that are this process's already.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpufence import names
from simulator.cluster.inside import cards, kubelet, mounts, network
from simulator.cluster.inside.containers import Containers
from simulator.controlplane import Assets, ControlPlane, Options
from simulator.controlplane.processes import Process, Surroundings, wait_until
from simulator.node.resources import gpu_capacity, labels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from simulator.cluster.setup import Setup
    from simulator.node.resources import Machine
    from simulator.progress import Progress

KUBELET = "kubelet"
READY_SECONDS = 120.0


class Keeper:
    """
    Runs the node; whoever has it looks now and then whether all of it still does.
    """

    def __init__(self, setup: Setup, environment: Mapping[str, str], progress: Progress) -> None:
        self._setup = setup
        self._assets = Assets.from_environment(environment)
        self._progress = progress
        self._surroundings = Surroundings(
            setup.folder, {"PATH": environment["PATH"], "HOME": str(setup.folder)}, leftovers=""
        )
        self._processes: list[Process] = []
        self._plane: ControlPlane | None = None

    def start(self, undo: ExitStack) -> int:
        """
        Start everything and return the API server's port once pods can run.
        """
        mounts.arrange(self._setup.folder)
        network.bring_up()
        machine = cards.install(self._setup)
        containers = Containers(
            self._setup.folder / "containerd", self._setup.networks, self._surroundings
        )
        with self._progress.step("starting containerd"):
            self._processes.append(containers.start())
        containers.load(self._setup.images)
        plane = self._plane = undo.enter_context(self._control_plane())
        undo.callback(network.serve_pods(plane.port).terminate)
        with self._progress.step("loading images into containerd"):
            containers.wait_for_images()
        with self._progress.step(f"starting the kubelet of node {machine.name}"):
            self._processes.append(self._start_kubelet(plane, machine))
            wait_until(
                lambda: _is_ready(plane, machine.name),
                self._processes,
                READY_SECONDS,
                f"node {machine.name} was ready",
            )
        _offer_cards(plane, machine)
        return plane.port

    def ended(self) -> list[Path]:
        """
        Name the logs of the programs that ended, and should not have.
        """
        logs = [process.log for process in self._processes if not process.is_running]
        if self._plane is not None:
            logs += [self._plane.folder / f"{name}.log" for name in self._plane.ended()]
        return logs

    def _control_plane(self) -> ControlPlane:
        options = Options(
            scheduler=True, controller_manager=True, kubelet=True, folder=self._setup.plane
        )
        return ControlPlane.start(self._assets, options, self._progress)

    def _start_kubelet(self, plane: ControlPlane, machine: Machine) -> Process:
        folder = self._setup.folder / "kubelet"
        folder.mkdir()
        configuration = kubelet.write_config(folder, plane.ca_file, self._setup.cgroup)
        (folder / "config.json").write_text(configuration)
        (folder / "kubeconfig").symlink_to(plane.node_kubeconfig(machine.name))
        program = self._assets.ensure([KUBELET], self._progress)[KUBELET]
        # A kubelet sets Kubernetes' own labels by itself, and may set few others of that prefix.
        ours = {key: value for key, value in labels(machine).items() if "kubernetes.io/" not in key}
        ours[names.SIMULATED] = "true"
        return Process(kubelet.command(program, folder, machine.name, ours), self._surroundings)


def _is_ready(plane: ControlPlane, node: str) -> bool:
    ready = "{.status.conditions[?(@.type=='Ready')].status}/{.spec.taints}"
    said = plane.kubectl("get", "node", node, "-o", f"jsonpath={ready}", check=False)
    return said.stdout == "True/"


def _offer_cards(plane: ControlPlane, machine: Machine) -> None:
    """
    Say what a device plugin would say; a kubelet lets resources of others be.
    """
    capacity = {name: str(count) for name, count in gpu_capacity(machine).items()}
    patch = json.dumps({"status": {"capacity": capacity}})
    where = ("node", machine.name, "--subresource=status", "--type=merge")
    plane.kubectl("patch", *where, "-p", patch)
