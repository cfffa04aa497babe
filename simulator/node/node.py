"""A node without kubelet or containers, for as long as a block of code runs."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from gpufence.names import SIMULATOR_STATE
from kube import ClientSettings, JsonObject, KubeError, as_is, connect, core
from kube.informers.reflector import Reflector
from kube.watch import Source
from simulator.controlplane.processes import GuardedProcess, Surroundings
from simulator.node.api import NodeApi, Registration
from simulator.node.claims import Driver
from simulator.node.errors import SetupError
from simulator.node.launch import StartContext, log_of
from simulator.node.lifecycle import RestartPauses
from simulator.node.machine import CLAIMS, GpuMachine, cards_of
from simulator.node.pods import Inbox, Pods
from simulator.node.processes import ProcRoot
from simulator.node.runtime import ContainerRuntime
from simulator.node.toolkit import Toolkit
from simulator.nvml.build import CURRENT, LIBRARY_VARIABLE, find_variant, library_path
from simulator.nvml.layout import Memacct
from simulator.nvml.state import State
from simulator.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import Client

ADDRESS = "127.0.0.1"
TICK_SECONDS = 0.05
SYNC_SECONDS = 20.0
JOIN_SECONDS = 10.0
_log = logging.getLogger(__name__)
_SILENCE = Progress()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """
    One node. The kubeconfig should be the node's own: user `system:node:<name>`.

    `admin_kubeconfig` is needed where no controller manager runs, see `api`. `cards` are
    written as for `python -m simulator nvml create`, `unit` is that of `aliyun.com/gpu-mem`, or
    `card` to hand them out without an amount, to so many `clients` each, or `claims` to publish
    them for resource claims (DRA).

    `driver` is a variant of NVML's library, `toolkit` what starts containers, `memacct` how the
    driver counts by control group, of which the host has version 2 or 1.
    """

    kubeconfig: Path
    name: str = "node-a"
    admin_kubeconfig: Path | None = None
    cards: str = "T4"
    unit: str = "GiB"
    clients: int = 1
    pauses: RestartPauses = field(default_factory=RestartPauses)
    heartbeat_seconds: float = 10.0
    stop_seconds: float = 2.0
    driver: str = CURRENT
    toolkit: Toolkit = Toolkit.NONE
    memacct: Memacct = Memacct.MISC
    cgroup_v2: bool = True


class SimulatedNode:
    """
    A running node; entering its block registers it, leaving ends its pods and takes it back.

    Its processes end with this one in whatever way that ends. Any number can run side by side. They
    and their pods run in the network of this machine, so its loopback address is also theirs.
    """

    def __init__(self, options: NodeOptions, progress: Progress = _SILENCE) -> None:
        self.name = options.name
        self._options = options
        self._progress = progress
        self._undo = ExitStack()
        self._stop = threading.Event()
        self._inbox = Inbox()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Register the node and look after its pods from now on."""
        with ExitStack() as undo:
            self._set_up(undo)
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """End all pods, take the node out of the API and leave nothing behind."""
        self._undo.close()

    @property
    def folder(self) -> Path:
        """Where pods have their volumes and logs; it goes with the node."""
        return self._folder

    @property
    def state(self) -> State:
        return self._state

    @property
    def proc_root(self) -> Path:
        return self._proc.folder

    @property
    def cgroup_root(self) -> Path:
        """Where its containers have their control groups: a folder like /sys/fs/cgroup."""
        return self._runtime.root

    @property
    def toolkit(self) -> Toolkit:
        """NVIDIA's container toolkit, as the next container to start finds it."""
        return self._runtime.toolkit

    @toolkit.setter
    def toolkit(self, toolkit: Toolkit) -> None:
        self._runtime.toolkit = toolkit

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of a program that runs on the node beside its pods."""
        return {
            SIMULATOR_STATE: str(self._state.path.absolute()),
            LIBRARY_VARIABLE: str(self._library),
            "GPUFENCE_PROC": str(self.proc_root),
            "GPUFENCE_CGROUP_ROOT": str(self.cgroup_root),
        }

    def change_driver(self, variant: str) -> None:
        """Install another driver: clients from before fail, those that start now load this one."""
        self._link(variant)
        self._state.upgrade_driver(find_variant(variant).driver)
        self._state.groups.memacct = self._state.groups.memacct

    def pids(self, namespace: str, name: str) -> list[int]:
        run = self._pods.find(f"{namespace}/{name}")
        if run is None:
            return []
        mine = set(run.lines.values())
        return sorted(pid for pid, line in self._pods.cgroups().items() if line in mine)

    def log(self, namespace: str, name: str, container: str) -> str:
        run = self._pods.find(f"{namespace}/{name}")
        if run is None:
            raise SetupError(f"pod {namespace}/{name} is not on node {self.name}")
        return log_of(run.folder, container).read_text(errors="replace")

    def _set_up(self, undo: ExitStack) -> None:
        client = self._client(self._options.kubeconfig, undo)
        self._folder = self._temporary_folder(undo)
        self._state = State.create(self._folder / "cards", self._options.cards, seed=self.name)
        self._proc = ProcRoot(self._folder / "proc")
        self._library = self._folder / "driver"
        self._link(self._options.driver)
        self._runtime = self._container_runtime()
        unit, clients = self._options.unit, self._options.clients
        machine = GpuMachine(self.name, ADDRESS, cards_of(self._state), unit, clients)
        api = NodeApi(client)
        driver = Driver(client, machine) if machine.unit == CLAIMS else None
        folder, cards = self._folder / "pods", self._state.path.absolute()
        context = StartContext(machine, api, folder, cards, self._runtime, driver)
        self._pods = Pods(context, api, self._options.pauses, self._progress.say)
        administrator = None
        if self._options.admin_kubeconfig is not None:
            administrator = self._client(self._options.admin_kubeconfig, undo)
        registration = Registration(machine, client, administrator, self._progress.say)
        registration.register()
        undo.callback(self._leave, registration)
        if driver is not None:
            driver.publish()
            undo.callback(driver.withdraw)
        self._follow(client, undo)
        self._run("pods", self._look_after, undo)
        self._run("heartbeat", lambda: self._beat(registration), undo)
        self._progress.say(f"node {self.name} is registered with {len(machine.cards)} cards")

    def _link(self, variant: str) -> None:
        """Let the folder of the driver's libraries be another's, at once."""
        aside = self._library.with_suffix(".new")
        aside.symlink_to(library_path(variant).parent)
        aside.rename(self._library)

    def _container_runtime(self) -> ContainerRuntime:
        self._state.groups.memacct = self._options.memacct
        groups, state = self._folder / "cgroup", self._state.path.absolute()
        v2 = self._options.cgroup_v2
        runtime = ContainerRuntime(groups, self._library, state, cgroup_v2=v2)
        runtime.toolkit = self._options.toolkit
        return runtime

    def _temporary_folder(self, undo: ExitStack) -> Path:
        folder = undo.enter_context(
            tempfile.TemporaryDirectory(prefix="gpufence-node-", ignore_cleanup_errors=True)
        )
        # If we are killed, somebody has to remove the folder: the warden of this sleeper.
        surroundings = Surroundings(Path(folder), {}, leftovers=folder)
        sleeper = GuardedProcess(["sleep", "infinity"], surroundings, grace_seconds=0)
        undo.callback(sleeper.end)
        return Path(folder)

    def _client(self, kubeconfig: Path, undo: ExitStack) -> Client:
        settings = ClientSettings(kubeconfig=str(kubeconfig), user_agent="gpufence-simulator")
        client = connect(settings)
        undo.callback(client.close)
        return client

    def _follow(self, client: Client, undo: ExitStack) -> None:
        source: Source[JsonObject] = Source(
            path=core("pods"), keep=as_is, query={"fieldSelector": f"spec.nodeName={self.name}"}
        )
        reflector = Reflector(client, source, self._inbox)
        reflector.start()
        undo.callback(reflector.stop)
        if not reflector.wait_until_synced(SYNC_SECONDS):
            raise SetupError(
                f"the pods of node {self.name} cannot be listed: {reflector.state.last_error}"
            )

    def _run(self, name: str, work: Callable[[], None], undo: ExitStack) -> None:
        thread = threading.Thread(target=work, name=f"{self.name} {name}", daemon=True)
        thread.start()
        undo.callback(thread.join, self._options.stop_seconds + 2 * JOIN_SECONDS)
        undo.callback(self._stop.set)

    def _look_after(self) -> None:
        while not self._stop.is_set():
            self._turn()
        self._pods.shut_down(self._options.stop_seconds)
        deadline = time.monotonic() + self._options.stop_seconds + JOIN_SECONDS
        while not self._pods.are_finished and time.monotonic() < deadline:
            self._turn()
        self._turn()

    def _turn(self) -> None:
        """Take the changes there are and look after all pods; no bug with one pod may end that."""
        try:
            change = self._inbox.next(TICK_SECONDS)
            while change is not None:
                self._pods.take(change)
                change = self._inbox.next(0)
            self._pods.tick(self._proc)
        except Exception:  # noqa: BLE001 (see above)
            _log.exception("node %s stumbled; going on", self.name)
            self._stop.wait(TICK_SECONDS)

    def _beat(self, registration: Registration) -> None:
        while not self._stop.wait(self._options.heartbeat_seconds):
            registration.beat()

    def _leave(self, registration: Registration) -> None:
        try:
            registration.leave()
        except KubeError as error:
            self._progress.say(f"node {self.name} stays in the API: {error}")
