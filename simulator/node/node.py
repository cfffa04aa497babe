"""
A node without kubelet or containers, for as long as a block of code runs.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kube import (
    ClientSettings,
    JsonObject,
    KubeError,
    Reflector,
    Source,
    as_is,
    connect,
    core,
)
from simulator.node import clock
from simulator.node.cluster import Cluster
from simulator.node.downward import NodeFacts
from simulator.node.errors import SetupError
from simulator.node.hardware import cards_of, driver_version, open_state
from simulator.node.launch import Bench, log_of
from simulator.node.pods import Inbox, Pods
from simulator.node.processes import Process
from simulator.node.procroot import ProcRoot
from simulator.node.registration import Registration
from simulator.node.resources import Machine, capacity
from simulator.progress import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from kube import Client
    from simulator.node.options import NodeOptions
    from simulator.nvml.state import State
    from simulator.progress import Progress

TICK_SECONDS = 0.05
SYNC_SECONDS = 20.0
JOIN_SECONDS = 10.0
_log = logging.getLogger(__name__)
_SILENCE = Silence()


class SimulatedNode:
    """
    A running node; entering its block registers it, leaving ends its pods and takes it back.

    Its processes end with this one in whatever way that ends. Any number can run side by side.
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
        """
        Register the node and look after its pods from now on.
        """
        with ExitStack() as undo:
            self._set_up(undo)
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """
        End all pods, take the node out of the API and leave nothing behind.
        """
        self._undo.close()

    @property
    def folder(self) -> Path:
        """
        Where pods have their volumes and logs; it goes with the node.
        """
        return self._folder

    @property
    def state(self) -> State:
        """
        The simulated cards.
        """
        return self._state

    @property
    def proc_root(self) -> Path:
        """
        What an agent takes for the /proc of this node.
        """
        return self._proc.folder

    def pids(self, namespace: str, name: str) -> list[int]:
        """
        Return the living processes of a pod.
        """
        run = self._pods.find(f"{namespace}/{name}")
        if run is None:
            return []
        mine = set(run.lines.values())
        return sorted(pid for pid, line in self._pods.cgroups().items() if line in mine)

    def log(self, namespace: str, name: str, container: str) -> str:
        """
        Return what the newest run of a container has written.
        """
        run = self._pods.find(f"{namespace}/{name}")
        if run is None:
            raise SetupError(f"pod {namespace}/{name} is not on node {self.name}")
        return log_of(run.folder, container).read_text(errors="replace")

    def _set_up(self, undo: ExitStack) -> None:
        client = self._client(self._options.kubeconfig, undo)
        self._folder = self._temporary_folder(undo)
        self._state = open_state(
            self._options.state or self._folder / "cards", self._options.cards, seed=self.name
        )
        self._proc = ProcRoot(self._options.proc or self._folder / "proc")
        undo.callback(self._proc.close)
        machine = self._machine(client)
        self._pods = self._make_pods(client, machine)
        registration = self._registration(client, machine, undo)
        registration.register()
        undo.callback(self._leave, registration)
        self._follow(client, undo)
        self._run("pods", self._look_after, undo)
        self._run("heartbeat", lambda: self._beat(registration), undo)
        self._progress.say(f"node {self.name} is registered with {len(machine.cards)} cards")

    def _temporary_folder(self, undo: ExitStack) -> Path:
        folder = undo.enter_context(
            tempfile.TemporaryDirectory(prefix="gpufence-node-", ignore_cleanup_errors=True)
        )
        # If we are killed, somebody has to remove the folder: the warden of this sleeper.
        sleeper = Process(["sleep", "infinity"], {}, Path(folder) / "sleeper.log", folder)
        undo.callback(sleeper.wait, JOIN_SECONDS)
        undo.callback(sleeper.kill)
        return Path(folder)

    def _client(self, kubeconfig: Path, undo: ExitStack) -> Client:
        settings = ClientSettings(kubeconfig=str(kubeconfig), user_agent="gpufence-simulator")
        client = connect(settings)
        undo.callback(client.close)
        return client

    def _machine(self, client: Client) -> Machine:
        return Machine(
            name=self.name,
            address=self._options.address,
            cards=cards_of(self._state),
            sharing=self._options.sharing,
            driver=driver_version(),
            gfd=self._options.gfd,
            labels=self._options.labels,
            taints=self._options.taints,
            kubelet=str(client.get("/version")["gitVersion"]),
        )

    def _make_pods(self, client: Client, machine: Machine) -> Pods:
        cluster = Cluster(client)
        bench = Bench(
            node=NodeFacts(self.name, self._options.address, capacity(machine)),
            cards=machine.cards,
            sharing=self._options.sharing,
            library=cluster,
            folder=self._folder / "pods",
            state=self._state.path.absolute(),
        )
        return Pods(bench, cluster, self._options.pauses, self._progress.say)

    def _registration(self, client: Client, machine: Machine, undo: ExitStack) -> Registration:
        administrator = None
        if self._options.admin_kubeconfig is not None:
            administrator = self._client(self._options.admin_kubeconfig, undo)
        return Registration(
            machine,
            client,
            administrator,
            self._progress.say,
            write_cards=self._options.write_cards,
        )

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
        deadline = clock.monotonic() + self._options.stop_seconds + JOIN_SECONDS
        while not self._pods.are_finished and clock.monotonic() < deadline:
            self._turn()
        self._turn()

    def _turn(self) -> None:
        """
        Take the news there are and look after all pods; no bug with one pod may end that.
        """
        try:
            news = self._inbox.next(TICK_SECONDS)
            while news is not None:
                self._pods.take(news)
                news = self._inbox.next(0)
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
