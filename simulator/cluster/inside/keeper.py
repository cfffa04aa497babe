"""Start all of a node and its control plane, in the namespaces that are this process's already."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from gpufence import names
from simulator.cluster.inside import isolation
from simulator.cluster.inside.containers import SOCKET, ContainerRuntime
from simulator.cluster.setup import NODE_ADDRESS, SIMULATED, STATE
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.node.machine import GpuMachine, cards_of, gpu_capacity, labels
from simulator.nvml.build import library_path
from simulator.nvml.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from simulator.cluster.setup import ClusterSetup
    from simulator.progress import Progress

KUBELET = "kubelet"
READY_SECONDS = 120.0


class NodeKeeper:
    """Runs the node; whoever has it looks now and then whether all of it still does."""

    def __init__(
        self, setup: ClusterSetup, environment: Mapping[str, str], progress: Progress
    ) -> None:
        self._setup = setup
        self._assets = Assets.from_environment(environment)
        self._progress = progress
        self._surroundings = Surroundings(
            setup.folder, {"PATH": environment["PATH"], "HOME": str(setup.folder)}
        )
        self._processes: list[GuardedProcess] = []
        self._plane: ControlPlane | None = None

    def start(self, undo: ExitStack) -> int:
        """Start everything and return the API server's port once pods can run."""
        isolation.arrange_mounts(self._setup.folder)
        isolation.bring_network_up()
        machine = install_cards(self._setup)
        containers = ContainerRuntime(
            self._setup.folder / "containerd", self._setup.networks, self._surroundings
        )
        with self._progress.step("starting containerd"):
            self._processes.append(containers.start())
        containers.load(self._setup.images)
        plane = self._plane = undo.enter_context(self._control_plane())
        undo.callback(isolation.serve_pods(plane.port).terminate)
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
        """Name the logs of the programs that ended, and should not have."""
        logs = [process.log for process in self._processes if not process.is_running]
        if self._plane is not None:
            logs += [self._plane.folder / f"{name}.log" for name in self._plane.ended()]
        return logs

    def _control_plane(self) -> ControlPlane:
        options = PlaneOptions(
            scheduler=True, controller_manager=True, kubelet=True, folder=self._setup.plane
        )
        return ControlPlane.start(self._assets, options, self._progress)

    def _start_kubelet(self, plane: ControlPlane, machine: GpuMachine) -> GuardedProcess:
        folder = self._setup.folder / "kubelet"
        folder.mkdir()
        configuration = kubelet_config(folder, plane.ca_file, self._setup.cgroup)
        (folder / "config.json").write_text(configuration)
        (folder / "kubeconfig").symlink_to(plane.node_kubeconfig(machine.name))
        program = self._assets.ensure([KUBELET], self._progress)[KUBELET]
        # A kubelet sets Kubernetes' own labels by itself, and may set few others of that prefix.
        ours = {key: value for key, value in labels(machine).items() if "kubernetes.io/" not in key}
        ours[names.SIMULATED] = "true"
        return GuardedProcess(
            kubelet_command(program, folder, machine.name, ours), self._surroundings
        )


def _is_ready(plane: ControlPlane, node: str) -> bool:
    ready = "{.status.conditions[?(@.type=='Ready')].status}/{.spec.taints}"
    answer = plane.kubectl("get", "node", node, "-o", f"jsonpath={ready}", check=False)
    return answer.stdout == "True/"


def _offer_cards(plane: ControlPlane, machine: GpuMachine) -> None:
    """Report what a device plugin would; a kubelet lets resources of others be."""
    patch = json.dumps({"status": {"capacity": gpu_capacity(machine)}})
    where = ("node", machine.name, "--subresource=status", "--type=merge")
    plane.kubectl("patch", *where, "-p", patch)


def install_cards(setup: ClusterSetup) -> GpuMachine:
    """
    Put the cards in and describe the machine that has them.

    The state is made here, inside, because it remembers the PID namespace in which it was made as
    the one whose numbers a driver knows.
    """
    SIMULATED.mkdir(parents=True)
    source = library_path()
    shutil.copy(source, SIMULATED / source.name)
    state = State.create(STATE, setup.cards, seed=setup.node)
    return GpuMachine(setup.node, NODE_ADDRESS, cards_of(state), setup.unit)


def kubelet_config(folder: Path, authority: Path, cgroup: str) -> str:
    """Write the configuration: as in any cluster where it matters, calm where a test only waits."""
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        # The machine may still use version 1, as this project's agent must cope with too.
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "podLogsDir": str(folder / "logs"),
        "resolvConf": "",
        # The disk is the person's own: it is neither ours to tidy up nor a reason to evict.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        # One image may be here by two names: loaded by one, and pulled from a registry by another.
        "imagePullCredentialsVerificationPolicy": "NeverVerify",
        # How soon a renewed Secret shows in its volume; by default a minute.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "5s",
        "volumePluginDir": str(folder / "volume-plugins"),
        "healthzBindAddress": "127.0.0.1",
    }
    return json.dumps(configuration, indent=2)


def kubelet_command(program: Path, folder: Path, node: str, labels: Mapping[str, str]) -> list[str]:
    label_list = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return [
        str(program),
        f"--config={folder / 'config.json'}",
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--root-dir={folder / 'root'}",
        f"--cert-dir={folder / 'pki'}",
        f"--hostname-override={node}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-labels={label_list}",
    ]
