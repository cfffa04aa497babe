"""
Start the containers of one pod: its card, its volumes, its variables, its process.

Only the simulator's own workload runs, and `sleep`. A pod's command comes from whoever may create
pods. On a real node a container holds it; here it would be an ordinary process of the person who
runs this.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpufence.names import SIMULATOR_STATE
from simulator.node.api import timestamp
from simulator.node.environment import ValueSources, command_line, references, resolve
from simulator.node.errors import RefusedPodError, SetupError
from simulator.node.machine import device_variables
from simulator.node.pod import cgroup_lines, cgroup_path
from simulator.node.processes import ContainerProcess
from simulator.node.volumes import Volumes, check_volumes, relocate, volume_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simulator.node.environment import Reference
    from simulator.node.machine import GpuMachine, Placement
    from simulator.node.pod import NodeContainer, NodePod
    from simulator.node.runtime import ContainerRuntime

IMAGE = "gpufence/workload"
MODULE = ("-m", "simulator", "workload")
_SECONDS = re.compile(r"[0-9]{1,9}")
_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")


class ObjectReader(Protocol):
    """Where ConfigMaps and Secrets are read; those that do not exist are left out."""

    def read(
        self, namespace: str, references: Iterable[Reference]
    ) -> dict[Reference, dict[str, str]]: ...


class Placing(Protocol):
    """Who knows which cards a pod was given, where that is not for the node to choose."""

    def place(self, pod: NodePod) -> Placement: ...


@dataclass(frozen=True, slots=True)
class StartContext:
    machine: GpuMachine
    reader: ObjectReader
    folder: Path
    state: Path
    runtime: ContainerRuntime
    driver: Placing | None = None


@dataclass(frozen=True, slots=True)
class StartedContainer:
    """`cgroup` is what /proc says of its processes."""

    id: str
    cgroup: str
    process: ContainerProcess
    started_at: str
    began: float


class PodStarter:
    """
    Starts the containers of one pod, in a folder of the pod's own that holds volumes and logs.
    """

    def __init__(self, pod: NodePod, context: StartContext, placement: Placement) -> None:
        self.folder = context.folder / pod.uid
        self.cards = placement.cards
        self._context = context
        self._volumes = Volumes(self.folder / "volumes")

    def refresh(self, pod: NodePod) -> None:
        """
        Let the volumes show the pod's present annotations and labels.

        ConfigMaps and Secrets are read again only when a container starts.
        """
        if (self.folder / "volumes").is_dir() and not volume_references(pod):
            self._volumes.fill(pod, ValueSources(self._context.machine.address))

    def start(self, pod: NodePod, container: NodeContainer, restarts: int) -> StartedContainer:
        """
        Start a container; raises NotYetError, RefusedPodError or StartError where that cannot be.
        """
        wanted = references(container) | volume_references(pod)
        sources = ValueSources(
            self._context.machine.address, self._context.reader.read(pod.namespace, wanted)
        )
        self._volumes.fill(pod, sources)
        home = self.folder / container.name
        home.mkdir(parents=True, exist_ok=True)
        places = self._volumes.mount(container, home / "root")
        variables = self._variables(pod, container, sources)
        program = program_of(container, command_line(container, variables))
        container_id, runtime = secrets.token_hex(32), self._context.runtime
        group = cgroup_path(pod, container_id)
        counted = runtime.begin(group, variables, self._context.machine.whole_cards)
        seen = {name: relocate(value, places) for name, value in variables.items()}
        return StartedContainer(
            id=container_id,
            cgroup=cgroup_lines(group, v2=runtime.cgroup_v2),
            process=ContainerProcess(
                [relocate(word, places) for word in program],
                {**seen, **counted},
                home / f"{restarts}.log",
            ),
            started_at=timestamp(),
            began=time.monotonic(),
        )

    def end(self, pod: NodePod, container_id: str) -> None:
        """Take away what the runtime has made for a container that has ended."""
        self._context.runtime.end(cgroup_path(pod, container_id))

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _variables(
        self, pod: NodePod, container: NodeContainer, sources: ValueSources
    ) -> dict[str, str]:
        """
        Merge those of the image, the device plugin and the pod; the last one wins, as with runc.
        """
        home = str(self.folder / container.name)
        image: Mapping[str, str] = {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "LANG": "C.UTF-8",
            "HOME": home,
            "TMPDIR": home,
            "HOSTNAME": pod.name,
            SIMULATOR_STATE: str(self._context.state),
        }
        devices = device_variables(container, self.cards, self._context.machine)
        return {**image, **devices, **resolve(container, pod, sources)}


def check_pod(pod: NodePod) -> None:
    if pod.unsupported:
        raise RefusedPodError(
            f"{' and '.join(pod.unsupported)}: not simulated; try a node of"
            " `python -m simulator cluster`"
        )
    check_volumes(pod)
    for container in pod.containers:
        program_of(container, (*container.command, *container.args))


def program_of(container: NodeContainer, words: Sequence[str]) -> tuple[str, ...]:
    """Return what is started: a workload, or a `sleep`, which does nothing on any machine."""
    if words[:1] == ("sleep",) and len(words) > 1 and _SECONDS.fullmatch(" ".join(words[1:])):
        return tuple(words)
    return (sys.executable, *MODULE, *workload_arguments(container, words))


def workload_arguments(container: NodeContainer, words: Sequence[str]) -> tuple[str, ...]:
    if not container.command and _is_workload(container.image):
        return tuple(words)
    if words and _PYTHON.fullmatch(words[0]) and tuple(words[1 : len(MODULE) + 1]) == MODULE:
        return tuple(words[len(MODULE) + 1 :])
    shown = " ".join(words) or f"the command of image {container.image}"
    raise RefusedPodError(
        f"{shown[:200]} is no simulator workload; this node runs only"
        f" python {' '.join(MODULE)} ..., or image {IMAGE} without a command"
    )


def log_of(folder: Path, container: str) -> Path:
    logs = sorted((folder / container).glob("*.log"), key=lambda path: int(path.stem))
    if not logs:
        raise SetupError(f"container {container} has no log; it was not started")
    return logs[-1]


def _is_workload(image: str) -> bool:
    folder, slash, last = image.partition("@")[0].rpartition("/")
    name = f"{folder}{slash}{last.partition(':')[0]}"
    return name == IMAGE or name.endswith(f"/{IMAGE}")
