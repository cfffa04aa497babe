"""
Containerd, running, with the images that the node's pods are made of.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.cluster.errors import MachineError
from simulator.cluster.inside import containerd, network
from simulator.cluster.inside.merge import merge
from simulator.cluster.overlay import overlay_works
from simulator.controlplane.processes import Process, Surroundings, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

READY_SECONDS = 30.0
CTR = ("ctr", "--address", containerd.SOCKET, "--namespace", "k8s.io")
_CAP_SYS_RESOURCE = 24


class Containers:
    """
    The node's runtime. Images load in the background from `load` on until `wait_for_images`.
    """

    def __init__(self, folder: Path, plugins: Path, surroundings: Surroundings) -> None:
        self._folder = folder
        self._plugins = plugins
        self._surroundings = surroundings
        self._overlay = False
        self._log = folder / "images.log"
        self._loading: subprocess.Popen[bytes] | None = None
        self._feeding: threading.Thread | None = None

    def start(self) -> Process:
        """
        Return once containerd answers.
        """
        self._folder.mkdir()
        networks = self._folder / "networks"
        network.write_pod_network(networks)
        self._overlay = overlay_works(self._folder)
        runtime = containerd.Runtime(
            folder=self._folder,
            networks=networks,
            plugins=self._plugins,
            overlay=self._overlay,
            limited=not _may_lower_oom_scores(Path("/proc/self/status").read_text()),
        )
        config = self._folder / "config.toml"
        config.write_text(containerd.write_config(runtime))
        process = Process(["containerd", "--config", str(config)], self._surroundings)
        wait_until(_answers, [process], READY_SECONDS, "containerd answered")
        return process

    def load(self, images: Sequence[Path]) -> None:
        """
        Begin to read archives of images.
        """
        snapshotter = containerd.snapshotter(overlay=self._overlay)
        command = [*CTR, "images", "import", "--snapshotter", snapshotter, "-"]
        with self._log.open("wb") as log:
            self._loading = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )
        self._feeding = threading.Thread(target=self._feed, args=[images], name="images")
        self._feeding.start()

    def wait_for_images(self) -> None:
        """
        Return once all are there.
        """
        if self._loading is None or self._feeding is None:
            return
        self._feeding.join()
        if self._loading.wait() != 0:
            raise MachineError(f"containerd could not load the images: {self._log.read_text()}")

    def _feed(self, images: Sequence[Path]) -> None:
        # Should the reader end early, its status and its words say more than our broken pipe.
        if self._loading is not None and self._loading.stdin is not None:
            with suppress(BrokenPipeError), self._loading.stdin as stream:
                merge(images, stream)


def _answers() -> bool:
    done = subprocess.run([*CTR, "version"], capture_output=True, check=False)
    return done.returncode == 0


def _may_lower_oom_scores(status: str) -> bool:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> _CAP_SYS_RESOURCE & 1)
    return False
