"""
What a node's file system and network are, in the namespaces that are this process's already.

The machine's file system becomes the node's own where a kubelet and containerd would change it. The
network has nothing but itself, its pods, and the API server under two addresses. Pods know that by
the address of its Service. In other clusters kube-proxy turns that into an address of a server;
here it is an address of the machine, with a forwarder behind it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from simulator.cluster import forward
from simulator.cluster.setup import NODE_ADDRESS
from simulator.controlplane.programs import LOOPBACK, SERVICE_ADDRESS

HTTPS = 443
PODS = "192.0.2.128/25"
# What a kubelet insists on (pkg/kubelet/cm, setupKernelTunables). It would change the whole
# machine, for good; instead it finds them as it wants them.
SETTINGS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}


def arrange_mounts(folder: Path) -> None:
    """Hide the machine's /run and its kernel settings behind ones of our own."""
    # Containers may ask for volumes whose later mounts they see; for that / has to be shared,
    # which here concerns this namespace only.
    _mount("--make-rshared", "/")
    _mount("-t", "tmpfs", "-o", "mode=755", "gpufence-cluster", "/run")
    for name, value in SETTINGS.items():
        _stand_in(folder / "settings", Path("/proc/sys", name), value)
    # For /var/lib/kubelet, where a kubelet has sockets whatever its root folder is, and for ours.
    make_changeable(Path("/var/lib"), Path("/run/gpufence-cluster/var-lib"))


def make_changeable(folder: Path, kept: Path) -> None:
    """
    Let entries be made in a folder without the machine noticing; what is in it stays reachable.
    """
    kept.mkdir(parents=True)
    _mount("--rbind", str(folder), str(kept))
    _mount("-t", "tmpfs", "-o", "mode=755", "gpufence-cluster", str(folder))
    for entry in sorted(kept.iterdir()):
        place = folder / entry.name
        if entry.is_symlink():
            place.symlink_to(entry.readlink())
        elif entry.is_dir():
            place.mkdir()
            _mount("--rbind", str(entry), str(place))


def _stand_in(folder: Path, path: Path, value: str) -> None:
    if not path.exists():
        return
    copy = folder / path.name
    folder.mkdir(exist_ok=True)
    copy.write_text(f"{value}\n")
    _mount("--bind", str(copy), str(path))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def bring_network_up() -> None:
    for arguments in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{NODE_ADDRESS}/32", "dev", "lo"),
        ("address", "add", f"{SERVICE_ADDRESS}/32", "dev", "lo"),
    ):
        subprocess.run(["ip", *arguments], check=True)


def serve_pods(port: int) -> subprocess.Popen[bytes]:
    """Open the way from the Service's address to the API server's port."""
    with socket.create_server((SERVICE_ADDRESS, HTTPS)) as listening:
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(forward.SCRIPT)),
                *(str(listening.fileno()), LOOPBACK, str(port)),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )


def write_pod_network(folder: Path) -> None:
    """Tell containerd to tie each pod to the machine by a pair of interfaces."""
    folder.mkdir()
    network = {
        "cniVersion": "0.4.0",
        "name": "gpufence",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": "/run/cni",
                },
            }
        ],
    }
    (folder / "10-gpufence.conflist").write_text(json.dumps(network, indent=2))
