"""A Kubernetes control plane for as long as a block of code runs."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import uuid4

from simulator.controlplane import programs
from simulator.controlplane.build import Assets
from simulator.controlplane.clients import PlaneClients
from simulator.controlplane.errors import RequestError
from simulator.controlplane.folders import given_folder, sweep, temporary_folder
from simulator.controlplane.identities import (
    USERS,
    SimulatedAuthority,
    User,
    node_user,
    write_secret,
)
from simulator.controlplane.processes import HeldPort, Surroundings
from simulator.controlplane.programs import PlaneOptions
from simulator.controlplane.servers import Servers
from simulator.progress import Progress

PLAIN = PlaneOptions()
NAMESPACES = "/api/v1/namespaces"
SILENCE = Progress()


@dataclass(frozen=True)
class PlaneParts:
    layout: programs.PlaneLayout
    clients: PlaneClients
    servers: Servers


class ControlPlane:
    """
    A running control plane; `ControlPlane.start(...)` makes one, leaving its block stops it.

    Its programs also end when this process does, in whatever way, and its port stays its own
    while the API server is stopped. One thread at a time may stop and start; all else is free.
    """

    def __init__(self, parts: PlaneParts, undo: ExitStack, ready_seconds: float) -> None:
        layout, self._clients, self._servers = parts.layout, parts.clients, parts.servers
        self._layout = layout
        self._undo = undo
        self.ready_seconds = ready_seconds
        self.url = layout.url(programs.API_SERVER)
        self.port = layout.ports[programs.API_SERVER]
        self.folder = layout.folder
        self.ca_file = layout.authority
        self.kubectl_path = layout.binaries[programs.KUBECTL]
        # What the parts offer is offered here under the same names.
        self.kubectl = parts.clients.kubectl
        self.ended = parts.servers.ended
        self.stop_api_server = parts.servers.stop_api_server
        self.start_api_server = parts.servers.start_api_server

    @classmethod
    def start(
        cls, assets: Assets, options: PlaneOptions = PLAIN, progress: Progress = SILENCE
    ) -> Self:
        """Build what is missing, start everything and return when it is ready."""
        binaries = assets.ensure([*options.servers, programs.KUBECTL], progress)
        begin = time.monotonic()
        for path in sweep():
            progress.say(f"removed {path}, which a control plane left behind that was killed")
        with ExitStack() as undo:
            parts = _assemble(assets, binaries, options, undo)
            undo.callback(parts.servers.stop)
            parts.servers.start(options.servers, progress)
            plane = cls(parts, undo.pop_all(), time.monotonic() - begin)
        progress.say(f"control plane ready in {plane.ready_seconds:.1f} s at {plane.url}")
        return plane

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop all programs and leave nothing behind. Stopping twice is no mistake."""
        self._undo.close()

    def restart_api_server(self) -> None:
        self.stop_api_server()
        self.start_api_server()

    def kubeconfig(self, user: str | User = "admin") -> Path:
        """
        Return a kubeconfig file for `admin`, `scheduler`, `controller-manager` or a user of yours.
        """
        if isinstance(user, User):
            return self._clients.kubeconfig(f"user-{user.name}@{user.group or ''}", user)
        if user not in USERS:
            raise RequestError(
                f"no user {user!r}; there are {', '.join(USERS)}, or give a User(name, group)"
            )
        return self._clients.kubeconfig(user, USERS[user])

    def node_kubeconfig(self, node: str) -> Path:
        return self._clients.kubeconfig(f"node-{node}", node_user(node))

    def service_account_token(
        self,
        namespace: str,
        name: str,
        *,
        pod: str | None = None,
        node: str | None = None,
        seconds: int = 3600,
        audience: str = "",
    ) -> str:
        """
        Return a token of a ServiceAccount, bound to a pod of its namespace, or a node, if named,
        and for another audience than the API server if that is.

        A token that is bound to a pod also names the node that the pod runs on.
        """
        spec: dict[str, object] = {"expirationSeconds": seconds}
        if pod is not None:
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": pod}
        elif node is not None:
            spec["boundObjectRef"] = {"kind": "Node", "apiVersion": "v1", "name": node}
        if audience:
            spec["audiences"] = [audience]
        path = f"{NAMESPACES}/{namespace}/serviceaccounts/{name}/token"
        made = self._clients.request("POST", path, {"spec": spec})
        return str(made["status"]["token"])

    def token_kubeconfig(self, label: str, token: str) -> Path:
        """Return a kubeconfig file for the holder of a token; the label tells the files apart."""
        return self._clients.token_kubeconfig(f"token-{label}", token)

    @contextmanager
    def fresh_namespace(self, prefix: str = "test") -> Iterator[str]:
        """
        Lend a namespace of a new name; at the end its deletion is begun and not waited for.

        With a controller manager it is lent once pods can be made in it.
        """
        name = f"{prefix}-{uuid4().hex[:8]}"
        self._clients.request("POST", NAMESPACES, {"metadata": {"name": name}})
        if self._layout.options.controller_manager:
            self._servers.wait_for_object(f"{NAMESPACES}/{name}/serviceaccounts/default")
        try:
            yield name
        finally:
            self._clients.request("DELETE", f"{NAMESPACES}/{name}")


def _assemble(
    assets: Assets, binaries: Mapping[str, Path], options: PlaneOptions, undo: ExitStack
) -> PlaneParts:
    folder = given_folder(options.folder) if options.folder else temporary_folder()
    undo.callback(folder.leave)
    ports: dict[str, int] = {}
    for name in options.servers:
        port = HeldPort()
        undo.callback(port.release)
        ports[name] = port.number
    layout = programs.PlaneLayout(binaries, folder.path, ports, options)
    surroundings = Surroundings(
        folder=folder.path,
        # Nothing of the person's own settings: no proxy, no kubeconfig, no kubectl aliases.
        environment={
            "HOME": str(folder.path),
            "PATH": assets.environment.get("PATH", "/usr/bin:/bin"),
            "TMPDIR": str(folder.path),
            "GOGC": str(options.heap_percent),
        },
        leftovers="" if folder.keep else str(folder.path),
    )
    authority = SimulatedAuthority()
    _write_certificates(layout, authority)
    clients = PlaneClients(layout, authority, surroundings.environment)
    return PlaneParts(layout, clients, Servers(layout, clients, surroundings))


def _write_certificates(layout: programs.PlaneLayout, authority: SimulatedAuthority) -> None:
    serving = authority.for_server()
    proxy = authority.for_user(User(programs.FRONT_PROXY))
    for path, content in (
        (layout.authority, authority.pair.certificate),
        (layout.authority_key, authority.pair.key),
        (layout.serving_certificate, serving.certificate),
        (layout.serving_key, serving.key),
        (layout.service_account_key, authority.for_server().key),
        *zip(layout.front_proxy, (proxy.certificate, proxy.key), strict=True),
    ):
        write_secret(path, content)
