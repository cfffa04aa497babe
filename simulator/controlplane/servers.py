"""The running servers of one control plane: started in order, stopped in reverse."""

from collections.abc import Sequence

from simulator.controlplane import programs
from simulator.controlplane.clients import PlaneClients
from simulator.controlplane.errors import ControlPlaneError
from simulator.controlplane.identities import CONTROLLER_MANAGER, SCHEDULER
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until
from simulator.progress import Progress

READY_SECONDS = 60.0

# What shows that a server does its work. The namespace comes after the API server calls itself
# ready, and so does what the controller manager makes in it.
_SIGNS = {
    programs.API_SERVER: ("/readyz", "/api/v1/namespaces/default"),
    programs.CONTROLLER_MANAGER: ("/api/v1/namespaces/default/serviceaccounts/default",),
    programs.SCHEDULER: ("/healthz",),  # that of Kubernetes 1.30 has no /readyz
}


class Servers:
    """Starts, watches and stops the servers, and knows when each is ready."""

    def __init__(
        self, layout: programs.PlaneLayout, clients: PlaneClients, surroundings: Surroundings
    ) -> None:
        self._layout = layout
        self._clients = clients
        self._surroundings = surroundings
        self._processes: dict[str, GuardedProcess] = {}

    def start(self, names: Sequence[str], progress: Progress) -> None:
        # etcd takes a fraction of the time that the API server needs before it looks for it.
        with progress.step("starting etcd and kube-apiserver"):
            self._run(programs.ETCD)
            self._run(programs.API_SERVER)
            self._wait_for(programs.API_SERVER)
        others = [name for name in names if name not in self._processes]
        if others:
            with progress.step(f"starting {' and '.join(others)}"):
                for name in others:
                    self._run(name)
                for name in others:
                    self._wait_for(name)

    def stop(self) -> None:
        """Stop all of them: first, at the same time, whatever depends on the API server."""
        others = [
            name for name in self._processes if name not in (programs.ETCD, programs.API_SERVER)
        ]
        self._end(*others)
        self._end(programs.API_SERVER)
        self._end(programs.ETCD)

    def stop_api_server(self) -> None:
        """Begin an outage: clients are refused; data, certificates and the port stay."""
        self._end(programs.API_SERVER)

    def start_api_server(self) -> None:
        """End an outage; return when the API server is ready."""
        if programs.API_SERVER in self._processes:
            raise ControlPlaneError("the API server was not stopped; call stop_api_server first")
        self._run(programs.API_SERVER)
        self._wait_for(programs.API_SERVER)

    def ended(self) -> list[str]:
        return [name for name, process in self._processes.items() if not process.is_running]

    def wait_for_object(self, path: str) -> None:
        wait_until(
            lambda: self._clients.is_found(path),
            list(self._processes.values()),
            READY_SECONDS,
            f"{path} was there",
        )

    def _run(self, name: str) -> None:
        self._processes[name] = GuardedProcess(self._command(name), self._surroundings)

    def _command(self, name: str) -> list[str]:
        if name == programs.ETCD:
            return programs.etcd(self._layout)
        if name == programs.API_SERVER:
            return programs.api_server(self._layout)
        if name == programs.SCHEDULER:
            config = self._clients.kubeconfig("scheduler", SCHEDULER)
            return programs.scheduler(self._layout, config)
        config = self._clients.kubeconfig("controller-manager", CONTROLLER_MANAGER)
        return programs.controller_manager(self._layout, config)

    def _wait_for(self, name: str) -> None:
        # The controller manager is judged by its work, which is the API server's to show.
        asked = name if name == programs.SCHEDULER else programs.API_SERVER
        wait_until(
            lambda: all(self._clients.is_found(path, asked) for path in _SIGNS[name]),
            [self._processes[programs.ETCD], self._processes[name]],
            self._layout.options.ready_seconds,
            f"{name} was ready",
        )

    def _end(self, *names: str) -> None:
        ending = [self._processes.pop(name) for name in names if name in self._processes]
        for process in ending:
            process.tell_to_stop()
        for process in ending:
            process.wait_for_end()
