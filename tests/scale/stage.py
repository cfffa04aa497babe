"""
The cluster that is played with: a real etcd and API server, filled, with gpufence own manifests,
one program that answers for all agents, the API server audit log, a relay that counts bytes, and
our programs as they run in their pods: with a token, without a kubeconfig, at their usual pace.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

from gpufence.names import SYSTEM_NAMESPACE
from kube import core
from simulator.controlplane import Assets, ControlPlane, PlaneOptions
from simulator.progress import Progress
from tests.scale import objects, size
from tests.scale.objects import sow
from tests.scale.size import Size
from tests.support.authority import Authority
from tests.support.observing import cpu_seconds, memory_mib, processes_naming
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, ServingProcess
from tests.support.servers import own_address
from tests.support.site import RIGHTS, surroundings
from tests.support.webhook_site import APPLIED, WebhookSite
from tools.manifests import COMPONENTS
from tools.manifests import objects as manifests

_LOOK_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Access:
    """The way of a pod to the API server."""

    url: str
    authority: Path
    token: Path


class Program(ServingProcess):
    """Use it as a context manager."""

    def __init__(self, name: str, access: Access, **settings: str) -> None:
        began = time.monotonic()
        files = str(access.authority), str(access.token)
        listen = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"}
        super().__init__(("tests.support.in_pod", name, access.url, *files), {**listen, **settings})
        self._began = began

    def page(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            LOOPBACK, self.port_of("statusListen"), timeout=PATIENCE_SECONDS
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, start: str) -> float:
        """Add up the lines of /metrics that begin so."""
        lines = self.page("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))

    def seconds_until(self, path: str) -> float:
        """Wait until a page says that all is well, and return how long that was after the start."""
        while self.page(path)[0] != http.HTTPStatus.OK:
            if time.monotonic() - self._began > _READY_SECONDS:
                raise TimeoutError(f"{path} is not well: {self.page(path)}")
            time.sleep(0.05)
        return time.monotonic() - self._began

    def seconds_until_metric(self, name: str) -> float:
        """Wait until a metric is not zero, and return how long that was after the start."""
        while not self.metric(name):
            if time.monotonic() - self._began > _READY_SECONDS:
                raise TimeoutError(f"{name} is zero")
            time.sleep(0.05)
        return time.monotonic() - self._began

    @property
    def memory(self) -> tuple[float, float]:
        return memory_mib(self.process.pid)

    @property
    def cpu(self) -> float:
        return cpu_seconds(self.process.pid)


@dataclass(frozen=True)
class Call:
    """One call of the plugin, and what it took."""

    seconds: float
    cpu_seconds: float
    mib: float
    code: int
    lines: int
    notes: str


def plugin(kubeconfig: Path, *arguments: str) -> Call:
    """Run the plugin as a person does, with its answer in a file."""
    folder = kubeconfig.parent
    out, err = folder / "plugin.out", folder / "plugin.err"
    began = time.monotonic()
    with out.open("wb") as answer, err.open("wb") as aside:
        process = subprocess.Popen(
            (sys.executable, "-m", "kubectl_gpufence", *arguments),
            env=surroundings({"KUBECONFIG": str(kubeconfig)}),
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=aside,
        )
        mib = _peak(process.pid)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Call(
        seconds=time.monotonic() - began,
        cpu_seconds=used.ru_utime + used.ru_stime,
        mib=mib,
        code=process.returncode,
        lines=out.read_text("utf-8").count("\n"),
        notes=err.read_text("utf-8"),
    )


def _peak(process_id: int) -> float:
    """Wait until a process has ended; return its peak, which the system tells with the parent's."""
    most = 0.0
    while os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with suppress(IndexError):  # it holds nothing any more
            most = max(most, memory_mib(process_id)[1])
        time.sleep(_LOOK_SECONDS)
    return most


_ACCOUNT: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_POD: Final = "authentication.kubernetes.io/pod-name"
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{SYSTEM_NAMESPACE}"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Asked:
    """One request of a program; `pod` is whose token it came with, where that is bound to one."""

    at: float
    account: str
    pod: str
    verb: str
    resource: str
    code: int

    @property
    def what(self) -> str:
        return f"{self.verb} {self.resource}"


class Audit:
    """The API server's log, in a folder of ours."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "audit-policy.json", folder / "audit.log"
        self._policy.write_text(json.dumps(_POLICY), encoding="utf-8")

    @property
    def options(self) -> tuple[str, ...]:
        """Return what makes the API server write it."""
        return f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}"

    def asked(self, account: str, since: float, until: float) -> list[Asked]:
        """Return the requests of an account between two moments, each watch when it began."""
        return [
            item for item in self._all() if item.account == account and since <= item.at < until
        ]

    def _all(self) -> Iterator[Asked]:
        with self._log.open(encoding="utf-8") as lines:
            for line in lines:
                with_end = line.endswith("\n")
                if with_end and (item := _read(json.loads(line))) is not None:
                    yield item


def _read(event: dict[str, object]) -> Asked | None:
    """Read one line; a watch has two of them, of which the second is no request."""
    verb, user = str(event["verb"]), event["user"]
    if verb == "watch" and event["stage"] == "ResponseComplete":
        return None
    assert isinstance(user, dict)
    about, answer = event.get("objectRef") or {}, event.get("responseStatus") or {}
    assert isinstance(about, dict)
    assert isinstance(answer, dict)
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    return Asked(
        at=datetime.fromisoformat(str(event["requestReceivedTimestamp"])).timestamp(),
        account=str(user["username"]).removeprefix(_ACCOUNT),
        pod="".join((user.get("extra") or {}).get(_POD, [])),
        verb=verb,
        resource=resource or str(event["requestURI"]).partition("?")[0],
        code=int(answer.get("code") or 0),
    )


_CHUNK = 2**16


class Relay:
    """Use it as a context manager; `asked` and `answered` are bytes, handshakes included."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._port = 0
        self.asked = 0
        self.answered = 0
        self.connections = 0

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._connected, LOOPBACK, 0, backlog=1024)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _connected(
        self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        try:
            server, to_server = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            to_client.close()
            return
        self.connections += 1
        await asyncio.gather(
            self._hand_on(client, to_server, asking=True),
            self._hand_on(server, to_client, asking=False),
        )

    async def _hand_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, asking: bool
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(_CHUNK):
                if asking:
                    self.asked += len(chunk)
                else:
                    self.answered += len(chunk)
                target.write(chunk)
                await target.drain()
        target.close()


_CONTROLLER: Final = "gpufence-controller"
_READY_SECONDS: Final = 600.0  # an API server that comes back has thousands of objects to read
_HEAP_PERCENT: Final = 100  # as Go does by itself: here memory is what there is least of


@dataclass(frozen=True)
class Stage:
    """Where everything is; `bytes_of` is how long objects are in JSON."""

    size: Size
    plane: ControlPlane
    site: WebhookSite
    audit: Audit
    folder: Path
    bytes_of: Mapping[str, int]

    def access(self, account: str, pod: str | None = None, relay: Relay | None = None) -> Access:
        """Return the way of a pod of ours to the API server."""
        token = self.folder / f"{pod or account}.token"
        token.write_text(self._token(account, pod), encoding="utf-8")
        return Access(self.plane.url if relay is None else relay.url, self.plane.ca_file, token)

    def server_mib(self) -> Mapping[str, float]:
        """Return what the API server and etcd hold."""
        return {name: memory_mib(pid)[0] for name, pid in self._servers()}

    def server_cpu(self) -> float:
        """Return the seconds of CPU that both have taken."""
        return sum(cpu_seconds(pid) for _, pid in self._servers())

    def _servers(self) -> list[tuple[str, int]]:
        named = [
            (Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip(), pid)
            for pid in processes_naming(str(self.plane.folder))
        ]
        return sorted(item for item in named if item[0] in {"etcd", "kube-apiserver"})

    def _token(self, account: str, pod: str | None) -> str:
        spec: dict[str, Any] = {"expirationSeconds": 7200}
        if pod is not None:
            made = self.site.admin.get(core("namespaces", self.site.system, "pods", pod))
            bound = {"kind": "Pod", "apiVersion": "v1", "name": pod, "uid": made["metadata"]["uid"]}
            spec["boundObjectRef"] = bound
        path = core("namespaces", self.site.system, "serviceaccounts", account, "token")
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.site.admin.post(path, body)["status"]["token"])


@contextmanager
def staged(folder: Path, wanted: Size, progress: Progress) -> Iterator[Stage]:
    """Start the cluster and fill it."""
    audit = Audit(folder)
    options = PlaneOptions(
        api_options=audit.options,
        heap_percent=_HEAP_PERCENT,
        ready_seconds=_READY_SECONDS,
    )
    authority = Authority()
    tls = folder / "tls"
    tls.mkdir()
    with ExitStack() as undo:
        assets = Assets.from_environment(os.environ)
        plane = undo.enter_context(ControlPlane.start(assets, options, progress))
        site = undo.enter_context(WebhookSite(plane, authority, tls))
        site.install()
        site.apply(
            *site.shipped("agent", APPLIED), *_controller(), objects.namespace(size.CHURN, "cap")
        )
        site.set_policy("evict")
        port = undo.enter_context(_answering(wanted))
        with progress.step(f"filling it: {wanted.nodes:,} nodes, {wanted.pods:,} pods"):
            bytes_of = sow(plane.folder, site.admin, wanted, own_address(), port)
        yield Stage(wanted, plane, site, audit, folder, bytes_of)


def _controller() -> list[dict[str, Any]]:
    kinds = RIGHTS | APPLIED | {"Lease"}
    return [item for item in manifests(COMPONENTS / "idle-release") if item["kind"] in kinds]


@contextmanager
def _answering(wanted: Size) -> Iterator[int]:
    """Play all agents, and return at which port."""
    figures = map(str, (wanted.nodes, wanted.pods, wanted.silent))
    command = (sys.executable, "-m", "tests.scale.agents", own_address(), *figures)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
