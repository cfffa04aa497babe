"""Containerd, told how to run one node's containers, with the images that its pods are made of."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from simulator.cluster import needs
from simulator.cluster.inside import isolation
from simulator.cluster.setup import MachineError
from simulator.controlplane.processes import GuardedProcess, Surroundings, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

SOCKET = "/run/containerd/containerd.sock"
PAUSE = "localhost/gpufence-pause:1"
READY_SECONDS = 30.0
CTR = ("ctr", "--address", SOCKET, "--namespace", "k8s.io")
_CAP_SYS_RESOURCE = 24
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class RuntimeFacts:
    """What depends on the machine; `limited` is a root that may not lower anybody's OOM score."""

    folder: Path
    networks: Path
    plugins: Path
    overlay: bool
    limited: bool


def snapshotter(*, overlay: bool) -> str:
    """Name the way to put an image's layers together; the second copies them."""
    return "overlayfs" if overlay else "native"


def write_config(runtime: RuntimeFacts) -> str:
    """Write the configuration. Version 2 is what containerd 1.6 and its successors read."""
    return f"""\
version = 2
root = "{runtime.folder}/root"
state = "/run/containerd"
# Those need devices or file systems of their own, and say so at length.
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "{runtime.folder}/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
disable_apparmor = true
# Without CAP_SYS_RESOURCE runc cannot lower an OOM score, and dies of trying.
restrict_oom_score_adj = {str(runtime.limited).lower()}

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter(overlay=runtime.overlay)}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{runtime.plugins}"
conf_dir = "{runtime.networks}"
"""


class ContainerRuntime:
    """The node's runtime. Images load in the background from `load` on until `wait_for_images`."""

    def __init__(self, folder: Path, plugins: Path, surroundings: Surroundings) -> None:
        self._folder = folder
        self._plugins = plugins
        self._surroundings = surroundings
        self._overlay = False
        self._log = folder / "images.log"
        self._loading: subprocess.Popen[bytes] | None = None
        self._feeding: threading.Thread | None = None

    def start(self) -> GuardedProcess:
        self._folder.mkdir()
        networks = self._folder / "networks"
        isolation.write_pod_network(networks)
        self._overlay = needs.overlay_works(self._folder)
        runtime = RuntimeFacts(
            folder=self._folder,
            networks=networks,
            plugins=self._plugins,
            overlay=self._overlay,
            limited=not _may_lower_oom_scores(Path("/proc/self/status").read_text()),
        )
        config = self._folder / "config.toml"
        config.write_text(write_config(runtime))
        process = GuardedProcess(["containerd", "--config", str(config)], self._surroundings)
        wait_until(_answers, [process], READY_SECONDS, "containerd answered")
        return process

    def load(self, images: Sequence[Path]) -> None:
        layers = snapshotter(overlay=self._overlay)
        command = [*CTR, "images", "import", "--snapshotter", layers, "-"]
        with self._log.open("wb") as log:
            self._loading = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )
        self._feeding = threading.Thread(target=self._feed, args=[images], name="images")
        self._feeding.start()

    def wait_for_images(self) -> None:
        if self._loading is None or self._feeding is None:
            return
        self._feeding.join()
        if self._loading.wait() != 0:
            raise MachineError(f"containerd could not load the images: {self._log.read_text()}")

    def _feed(self, images: Sequence[Path]) -> None:
        # Should the reader end early, its status and its words say more than our broken pipe.
        if self._loading is not None and self._loading.stdin is not None:
            with suppress(BrokenPipeError), self._loading.stdin as stream:
                merge_archives(images, stream)


def _answers() -> bool:
    done = subprocess.run([*CTR, "version"], capture_output=True, check=False)
    return done.returncode == 0


def _may_lower_oom_scores(status: str) -> bool:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            return bool(int(value, 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def merge_archives(archives: Sequence[Path], stream: IO[bytes]) -> None:
    """
    Write archives of `docker save`'s form as a single one of that form.

    Layers and configurations are named by their content; the lists of images are joined. What else
    there is repeats that for versions of Docker that nobody has any more.
    """
    images: list[object] = []
    written = {MANIFEST, "repositories"}
    with tarfile.open(fileobj=stream, mode="w|") as merged:
        for archive in archives:
            with tarfile.open(archive) as single:
                images += json.loads(_content(single, single.getmember(MANIFEST)).read())
                for member in single:
                    if member.isfile() and "/" not in member.name and member.name not in written:
                        written.add(member.name)
                        merged.addfile(member, _content(single, member))
        listed = json.dumps(images).encode()
        entry = tarfile.TarInfo(MANIFEST)
        entry.size = len(listed)
        merged.addfile(entry, io.BytesIO(listed))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} of an archive is no file")
    return content
