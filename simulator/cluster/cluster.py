"""A Kubernetes cluster of one node, for as long as a block of code runs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from simulator.cluster import cgroups, needs
from simulator.cluster.images.archives import ImageArchives
from simulator.cluster.machine import IsolatedMachine, PortForward
from simulator.cluster.setup import STATE, ClusterOptions, ClusterSetup, MachineError
from simulator.controlplane import RequestError, programs
from simulator.controlplane.folders import sweep, temporary_folder
from simulator.controlplane.identities import (
    PemPair,
    ServerIdentity,
    with_certificate,
    write_secret,
)
from simulator.controlplane.processes import GuardedProcess, Surroundings
from simulator.controlplane.programs import LOOPBACK
from simulator.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simulator.controlplane import Assets

PREFIX = "gpufence-cluster-"
PROGRAMS = (
    programs.ETCD,
    programs.API_SERVER,
    programs.KUBECTL,
    programs.CONTROLLER_MANAGER,
    programs.SCHEDULER,
    "kubelet",
)
READY_SECONDS = 300.0
KUBECTL_SECONDS = 120.0
PLAIN = ClusterOptions()
SILENCE = Progress()


class SimulatedCluster:
    """
    A running cluster; `SimulatedCluster.start(...)` makes one, leaving its block ends it.

    It also ends with this process, in whatever way; what that may leave, groups and a folder, the
    next start removes.
    """

    def __init__(
        self, machine: IsolatedMachine, setup: ClusterSetup, kubectl: Path, undo: ExitStack
    ) -> None:
        self._machine = machine
        self._setup = setup
        self._kubectl = kubectl
        self._undo = undo
        self._forward = PortForward(machine, int(setup.ready.read_text()))
        undo.callback(self._forward.close)
        self.kubeconfig = self._write_kubeconfig()

    @classmethod
    def start(
        cls, assets: Assets, options: ClusterOptions = PLAIN, progress: Progress = SILENCE
    ) -> Self:
        """
        Build and make what is missing, and return when pods can run.

        Raises:
            NeedError: this machine lacks something, all of which is named.

        """
        needs.check()
        binaries = assets.ensure(PROGRAMS, progress)
        archives = ImageArchives.from_environment(assets.environment).ensure(progress)
        begin = time.monotonic()
        clear_away(progress)
        with ExitStack() as undo:
            setup = _prepare(options, tuple(archives), undo)
            machine = _switch_on(setup, assets, undo)
            machine.wait_until(setup.ready.exists, READY_SECONDS, "the cluster was ready")
            cluster = cls(machine, setup, binaries[programs.KUBECTL], undo)
            cluster._undo = undo.pop_all()
        progress.say(f"cluster ready in {time.monotonic() - begin:.1f} s, node {options.node}")
        return cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End everything and leave nothing behind. Stopping twice is no mistake."""
        self._undo.close()

    @property
    def folder(self) -> Path:
        return self._setup.folder

    @property
    def node(self) -> str:
        return self._setup.node

    @property
    def kubectl_path(self) -> Path:
        return self._kubectl

    @property
    def state(self) -> Path:
        """The state file of the node's cards, as it can be opened from here."""
        return Path(f"/proc/{self._machine.pid}/root{STATE}")

    @property
    def is_running(self) -> bool:
        return self._machine.is_running

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """
        Run the real kubectl as administrator.

        Raises:
            RequestError: kubectl ended with a status that is not zero, unless `check` is off.

        """
        done = self._run([str(self._kubectl), *arguments], stdin)
        if check and done.returncode != 0:
            raise RequestError(
                f"kubectl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}"
            )
        return done

    def command_inside(self, *command: str) -> list[str]:
        """
        Return what runs a command among the node's processes, mounts and interfaces, as its root.
        """
        return self._machine.inside(*command)

    @contextmanager
    def serving(self, command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
        """Run a server on the node's loopback, and let its port lead there from here, too."""
        there = Surroundings(folder, {"PATH": needs.search_path()})
        process = GuardedProcess(self._machine.connected(*command), there)
        try:
            with closing(PortForward(self._machine, port, port)):
                yield
        finally:
            process.end()

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self._run(self._machine.inside(*command), None)

    def _run(self, command: list[str], stdin: str | None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={
                "HOME": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                "PATH": needs.search_path(),
            },
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
        )

    def _write_kubeconfig(self) -> Path:
        plane = self._setup.plane
        server = ServerIdentity(
            f"https://{LOOPBACK}:{self._forward.port}", (plane / "ca.crt").read_bytes()
        )
        pair = PemPair((plane / "admin.crt").read_bytes(), (plane / "admin.key").read_bytes())
        return write_secret(self.folder / "kubeconfig", with_certificate(server, pair))


def clear_away(progress: Progress) -> None:
    for path in sweep(prefix=PREFIX):
        progress.say(f"removed {path}, which a cluster left behind that was killed")
    # In this order: a cluster has its folder before its groups, and longer.
    groups = cgroups.leftovers(PREFIX)
    alive = {path.name for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*")}
    for name in groups - alive:
        try:
            cgroups.remove(name)
        except MachineError as error:
            # Perhaps it belongs to a cluster that was told of another folder for temporary files.
            progress.say(str(error))


def _prepare(options: ClusterOptions, archives: tuple[Path, ...], undo: ExitStack) -> ClusterSetup:
    folder = temporary_folder(prefix=PREFIX)
    undo.callback(folder.leave)
    name = folder.path.name
    undo.callback(cgroups.remove, name)
    cgroups.make(name)
    return ClusterSetup(
        folder=folder.path,
        node=options.node,
        cards=options.cards,
        unit=options.unit,
        cgroup=f"/{name}",
        networks=needs.network_plugins(),
        images=archives,
    )


def _switch_on(setup: ClusterSetup, assets: Assets, undo: ExitStack) -> IsolatedMachine:
    command = [sys.executable, "-m", "simulator.cluster.inside", str(setup.write())]
    environment = {**assets.environment, "PATH": needs.search_path()}
    machine = IsolatedMachine(command, setup.folder, setup.pid, environment)
    undo.callback(machine.end)
    return machine
