"""
How containerd is told to run one node's containers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SOCKET = "/run/containerd/containerd.sock"
PAUSE = "localhost/gpufence-pause:1"


@dataclass(frozen=True)
class Runtime:
    """
    What depends on the machine; `limited` is a root that may not lower anybody's OOM score.
    """

    folder: Path
    networks: Path
    plugins: Path
    overlay: bool
    limited: bool


def snapshotter(*, overlay: bool) -> str:
    """
    Name the way to put an image's layers together; the second copies them.
    """
    return "overlayfs" if overlay else "native"


def write_config(runtime: Runtime) -> str:
    """
    Write the configuration. Version 2 is what containerd 1.6 and its successors read.
    """
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
