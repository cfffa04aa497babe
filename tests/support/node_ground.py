"""Make pods for a simulated node and watch what becomes of them, through the real API server."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufence.errors import GpufenceError
from simulator.controlplane import ControlPlane
from simulator.node import SimulatedNode
from simulator.nvml.build import environment
from tests.support.observing import eventually

Json = dict[str, Any]

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

    def create(self, wanted: Json) -> None:
        self.plane.kubectl("create", "-n", self.namespace, "-f", "-", stdin=json.dumps(wanted))

    def place(self, wanted: Json) -> None:
        """Create a pod on the node, past any scheduler."""
        wanted["spec"]["nodeName"] = self.node.name
        self.create(wanted)

    def get(self, name: str) -> Json | None:
        """Read a pod, None if it is not there."""
        done = self.plane.kubectl(
            "get", "pod", name, "-n", self.namespace, "-o", "json", "--ignore-not-found"
        )
        found: Json | None = json.loads(done.stdout) if done.stdout else None
        return found

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
            return any(one["name"] == container and one["containerID"] for one in every)

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
