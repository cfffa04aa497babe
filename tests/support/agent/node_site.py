"""A simulated node with its agent's rights, fenced pods on it, and the agent as a real process."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from gpufence import names
from gpufence.errors import GpufenceError
from gpufence.snapshot import Snapshot, read_snapshot
from kube import Client, NotFoundError, core
from simulator.controlplane import ControlPlane
from simulator.node import NodeOptions, SimulatedNode
from simulator.nvml.build import environment
from tests.support.objects import agent_pod
from tests.support.observing import MEASURING, children_naming, eventually, memory_of, wait_until
from tests.support.processes import LOOPBACK, PATIENCE_SECONDS, Line, ServingProcess
from tests.support.site import AGENT, PlaneSite

__all__ = ["QUICK", "AgentProcess", "Line"]

QUICK = {
    "GPUFENCE_INTERVAL_SECONDS": "0.2",
    "GPUFENCE_LIST_SECONDS": "0.4",
    "GPUFENCE_HOLD_SECONDS": "0.8",
    "GPUFENCE_SHORT_HOLD_SECONDS": "0.4",
    "GPUFENCE_GRACE_SECONDS": "0.2",
    "GPUFENCE_START_PAUSE_SECONDS": "0.2",
    "GPUFENCE_EVICTION_GRACE_SECONDS": "1",
    "GPUFENCE_NODE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NAMESPACE_EVICTIONS_PER_MINUTE": "1000",
    "GPUFENCE_NVML_DEADLINE_SECONDS": "1",
    "GPUFENCE_NVML_RESTART_SECONDS": "0.05",
    "GPUFENCE_NVML_RESTART_LIMIT_SECONDS": "0.1",
    "GPUFENCE_NVML_AVOID_SECONDS": "0.5",
    "GPUFENCE_UNMEASURED_SECONDS": "0.5",
    "GPUFENCE_REPEATED_HOLD_SECONDS": "0.8",
}


class AgentProcess(ServingProcess):
    """
    Runs `python -m agent`, or another module with its arguments, on a free port; use it as a
    context manager.
    """

    def __init__(self, *command: str, **settings: str) -> None:
        environment = {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0", **QUICK, **settings}
        super().__init__(command or ("agent",), environment)

    @property
    def port(self) -> int:
        return self.port_of("statusListen")

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def snapshot(self) -> Snapshot:
        return read_snapshot(self.get("/v1/snapshot")[1])

    def metrics(self) -> dict[str, float]:
        """Return every line of /metrics by its name and labels, but for the node's."""
        _, page = self.get("/metrics")
        lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {_NODE.sub("", name).replace("{}", ""): float(value) for name, _, value in lines}

    def outcomes(self, name: str) -> list[str]:
        """Return what the agent makes of a pod at the moment, for each card."""
        pods = [pod for pod in self.snapshot().pods if pod.name == name]
        return [use.outcome for pod in pods for use in pod.uses]

    def wait_for_outcome(self, name: str, *outcomes: str) -> None:
        reached = eventually(lambda: bool(set(self.outcomes(name)) & set(outcomes)))

        assert reached, f"{name} is not {outcomes}: {self.snapshot()} {self.lines[-5:]}"


Json = dict[str, Any]
_NODE = re.compile(r',?node="[^"]*"')

_LIST = """
import json, pynvml
pynvml.nvmlInit()
found = {}
for index in range(pynvml.nvmlDeviceGetCount()):
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
        found[process.pid] = [index, process.usedGpuMemory]
print(json.dumps(found))
"""


def workload(script: str, *options: str, **fields: Any) -> Json:
    """Describe a container that follows the script."""
    name = fields.pop("name", "main")
    return {"name": name, "image": "gpufence/workload", "args": [script, *options], **fields}


def pod(name: str, *containers: Json, **spec: Any) -> Json:
    """Describe a pod; `annotations` go where they belong."""
    annotations = spec.pop("annotations", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": list(containers), **spec},
    }


@dataclass(frozen=True)
class Ground:
    """One namespace and one node to try pods on."""

    plane: ControlPlane
    namespace: str
    node: SimulatedNode
    admin: Client

    def create(self, wanted: Json) -> None:
        self.admin.post(core("namespaces", self.namespace, "pods"), wanted)

    def place(self, wanted: Json) -> None:
        """Create a pod on the node, past any scheduler."""
        wanted["spec"]["nodeName"] = self.node.name
        self.create(wanted)

    def get(self, name: str) -> Json | None:
        """Read a pod, None if it is not there."""
        try:
            return self.admin.get(core("namespaces", self.namespace, "pods", name))
        except NotFoundError:
            return None

    def status(self, name: str) -> Json:
        found = self.get(name)
        status: Json = {} if found is None else found["status"]
        return status

    def delete(self, name: str, *options: str) -> None:
        self.plane.kubectl("delete", "pod", name, "-n", self.namespace, *options)

    def wait_for_phase(self, name: str, phase: str) -> None:
        reached = eventually(lambda: self.status(name).get("phase") == phase)

        assert reached, f"{name} is not {phase}: {self.get(name)}"

    def wait_for_log(self, name: str, text: str, container: str = "main") -> None:
        """Wait until the container has said something."""

        def said() -> bool:
            try:
                return text in self.node.log(self.namespace, name, container)
            except (OSError, GpufenceError):
                return False

        self.wait_for_start(name, container)
        reached = eventually(said)

        assert reached, self.node.log(self.namespace, name, container)

    def wait_for_start(self, name: str, container: str) -> None:
        """Wait until the container has been started."""

        def was_started() -> bool:
            status = self.status(name)
            every = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
            return any(one["name"] == container and one.get("containerID") for one in every)

        assert eventually(was_started), self.status(name)


def nvml_processes(state: Path) -> dict[int, tuple[int, int]]:
    """Ask the real pynvml, in a process of its own, for each PID's card and bytes."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST],
        env=environment(state),
        capture_output=True,
        text=True,
        check=True,
    )
    return {int(pid): (card, used) for pid, (card, used) in json.loads(done.stdout).items()}


GPU = {"limits": {names.GPUSHARE_MEMORY: "2"}}
WITHIN = "hold 1Gi"
OVER = "hold 3Gi"


class NodeSite(PlaneSite):
    """`system` is where the shipped rights are applied, in a namespace of its own."""

    def __init__(self, plane: ControlPlane, node: SimulatedNode, system: str) -> None:
        super().__init__(plane, system)
        self.node = node
        self.fenced: list[str] = []

    def install(self) -> None:
        items = self.shipped_agent()
        for item in items:
            if item["kind"] == "ClusterRoleBinding":  # another site's would take its subject away
                item["metadata"]["name"] += f"-{self.system}"
        self.apply(*items)
        self.set_policy("evict")
        self.admin.post(
            core("namespaces", self.system, "pods"), agent_pod(self._agent, self.node.name)
        )

    def ground(self, namespace: str, mode: str = "evict") -> Ground:
        """Fence a namespace."""
        self.label(namespace, mode)
        self.fenced.append(namespace)
        return Ground(self.plane, namespace, self.node, self.admin)

    def clear(self) -> None:
        """Take all fenced pods away."""
        while self.fenced:
            self._clear(core("namespaces", self.fenced.pop(), "pods"))

    def _clear(self, pods: str) -> None:
        self.admin.delete(pods, {"gracePeriodSeconds": 1})
        wait_until(lambda: not self.admin.list(pods).items, "pods stay")

    def environment(self) -> dict[str, str]:
        """Return what a pod of the DaemonSet would have, its token in a kubeconfig."""
        token = self.plane.service_account_token(self.system, AGENT, pod=self._agent)
        return {
            **self.node.environment,
            "KUBECONFIG": str(self.kubeconfig_of(AGENT, token)),
            "GPUFENCE_NODE": self.node.name,
            "GPUFENCE_NAMESPACE": self.system,
        }

    def agent(self, **settings: str) -> AgentProcess:
        return AgentProcess(**self.environment() | settings)

    @property
    def _agent(self) -> str:
        return f"{AGENT}-{self.node.name}"


def fenced_pod(name: str, script: str, card: int = 0) -> dict[str, Any]:
    """Describe a pod for a card whose limit is 2 GiB, as the webhook would have left it."""
    annotations = {names.INJECTED: "nothing", names.GPUSHARE_CARD_INDEX: str(card)}
    container = workload(script, "--context", "100Mi", resources=GPU)
    return pod(name, container, annotations=annotations)


def place(ground: Ground, *pods: dict[str, Any]) -> None:
    """Put pods on the node, past any scheduler."""
    for item in pods:
        item["spec"]["nodeName"] = ground.node.name
        ground.create(item)


def is_gone(ground: Ground, name: str) -> bool:
    """Tell whether a pod was asked to go."""
    found = ground.get(name)
    return found is None or "deletionTimestamp" in found["metadata"]


def wait_until_gone(ground: Ground, name: str, agent: AgentProcess) -> None:
    wait_until(lambda: is_gone(ground, name), f"{agent.snapshot()} {agent.lines[-5:]}")


def events(ground: Ground, reason: str) -> list[dict[str, Any]]:
    """Return the Events of a reason."""
    found = ground.admin.get(core("namespaces", ground.namespace, "events"))
    return [item for item in found["items"] if item["reason"] == reason]


RESTART_SECONDS = 30.0


class Agent:
    """One agent after another, for as long as the block lasts; `make` starts one."""

    def __init__(self, make: Callable[[], AgentProcess]) -> None:
        self._make = make
        self._run: AgentProcess | None = None
        self._earlier: list[Line] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._run is not None:
            self._run.__exit__(None, None, None)

    @property
    def lines(self) -> list[Line]:
        """The log of all runs."""
        return self._earlier + ([] if self._run is None else self._run.lines)

    def start(self) -> None:
        """Start it; it is not waited for."""
        self._run = self._make()

    def kill(self) -> None:
        """End it without a word; its child ends by itself."""
        if self._run is not None:
            self._run.kill()
            self._earlier += self._run.lines
            self._run = None

    def children(self) -> list[int]:
        """Find the processes that measure for the agent."""
        return [] if self._run is None else children_naming(self._run.process.pid, MEASURING)

    def signal_child(self, number: signal.Signals) -> list[int]:
        """Send the measuring child a signal, and return which it was."""
        children = self.children()
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return children

    def memory(self) -> int:
        """Add up what the agent and its child hold, in bytes; nothing while it does not run."""
        if self._run is None:
            return 0
        return sum(memory_of(pid) for pid in (self._run.process.pid, *self.children()))

    def wait_until_gone(self, pids: list[int]) -> None:
        """Wait until none of these processes is left and the agent has a child again."""
        back = eventually(
            lambda: not set(pids) & set(self.children()) and bool(self.children()),
            RESTART_SECONDS,
        )

        assert back, f"no new child: {self.lines[-20:]}"


@contextmanager
def node_site(control_plane: ControlPlane, **options: Any) -> Iterator[NodeSite]:
    """Run a simulated node of a name of its own, with the agent's rights applied."""
    name = f"gpu-{uuid4().hex[:8]}"
    made = NodeOptions(
        kubeconfig=control_plane.node_kubeconfig(name),
        admin_kubeconfig=control_plane.kubeconfig(),
        name=name,
        **options,
    )
    with (
        control_plane.fresh_namespace("system") as system,
        SimulatedNode(made) as node,
        NodeSite(control_plane, node, system) as ready,
    ):
        ready.install()
        yield ready
