"""
Start the containers of one pod: its cards, its volumes, its variables, its process.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpufence.errors import GpufenceError
from gpufence.names import SIMULATOR_STATE
from simulator.node import clock
from simulator.node.cgroup import cgroup_line
from simulator.node.environment import Sources, command_line, references, resolve
from simulator.node.placement import Placement, device_variables
from simulator.node.processes import Process
from simulator.node.program import MODULE, arguments
from simulator.node.projections import relocate, volume_references
from simulator.node.volumes import Volumes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpufence.cards import Card
    from simulator.node.downward import NodeFacts
    from simulator.node.environment import Reference
    from simulator.node.pod import Container, Pod
    from simulator.node.sharing import Sharing


class Library(Protocol):
    """
    Where ConfigMaps and Secrets are read; those that do not exist are left out.
    """

    def read(
        self, namespace: str, references: Iterable[Reference]
    ) -> dict[Reference, dict[str, str]]: ...


@dataclass(frozen=True, slots=True)
class Bench:
    """
    What every container of a node is started with.
    """

    node: NodeFacts
    cards: tuple[Card, ...]
    sharing: Sharing
    library: Library
    folder: Path
    state: Path


@dataclass(frozen=True, slots=True)
class Launched:
    """
    A started container; `began` is on the monotonic clock.
    """

    id: str
    cgroup: str
    process: Process
    started_at: str
    began: float
    cards: str


class Launch:
    """
    Starts the containers of one pod, in a folder of the pod's own that holds volumes and logs.
    """

    def __init__(self, pod: Pod, bench: Bench, placement: Placement) -> None:
        self.folder = bench.folder / pod.uid
        self._bench = bench
        self._placement = placement
        self._volumes = Volumes(self.folder / "volumes")

    def refresh(self, pod: Pod) -> None:
        """
        Let the volumes show the pod's present annotations and labels.

        ConfigMaps and Secrets are read again only when a container starts.
        """
        if (self.folder / "volumes").is_dir() and not volume_references(pod):
            self._volumes.fill(pod, Sources(self._bench.node))

    def start(self, pod: Pod, container: Container, restarts: int) -> Launched:
        """
        Start a container; raises NotYetError or RefusedPodError where that cannot be.
        """
        sources = self._sources(pod, container)
        self._volumes.fill(pod, sources)
        home = self.folder / container.name
        home.mkdir(parents=True, exist_ok=True)
        places = self._volumes.mount(container, home / "root")
        variables = self._variables(pod, container, sources)
        command, args = command_line(container, variables)
        words = arguments(container.image, command, args)
        process = Process(
            [sys.executable, *MODULE, *(relocate(word, places) for word in words)],
            {name: relocate(value, places) for name, value in variables.items()},
            home / f"{restarts}.log",
        )
        cards = self._placement.cards.get(container.name, ())
        container_id = secrets.token_hex(32)
        return Launched(
            id=container_id,
            cgroup=cgroup_line(pod, container_id),
            process=process,
            started_at=clock.timestamp(),
            began=clock.monotonic(),
            cards=", ".join(f"card {card.index} ({card.uuid})" for card in cards),
        )

    def clear(self) -> None:
        """
        Remove the pod's folder.
        """
        shutil.rmtree(self.folder, ignore_errors=True)

    def _sources(self, pod: Pod, container: Container) -> Sources:
        wanted = references(container) | volume_references(pod)
        return Sources(self._bench.node, self._bench.library.read(pod.namespace, wanted))

    def _variables(self, pod: Pod, container: Container, sources: Sources) -> dict[str, str]:
        """
        Merge what the image, the device plugin and the pod say; the last one wins, as with runc.
        """
        home = str(self.folder / container.name)
        image: Mapping[str, str] = {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "LANG": "C.UTF-8",
            "HOME": home,
            "TMPDIR": home,
            "HOSTNAME": pod.name,
            SIMULATOR_STATE: str(self._bench.state),
        }
        devices = device_variables(
            container, self._placement, self._bench.cards, self._bench.sharing
        )
        return {**image, **devices, **resolve(container, pod, sources)}


def log_of(folder: Path, container: str) -> Path:
    """
    Find the newest log of a container below its pod's folder.
    """
    logs = sorted((folder / container).glob("*.log"), key=lambda path: int(path.stem))
    if not logs:
        raise GpufenceError(f"container {container} has no log; it was not started")
    return logs[-1]
