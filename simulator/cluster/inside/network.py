"""
The machine's network: nothing but itself, its pods, and the API server under two addresses.

Pods know the API server by the address of its Service. In other clusters kube-proxy turns that
into an address of a server; here it is an address of the machine, with a door behind it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from simulator.cluster import door
from simulator.cluster.setup import NODE_ADDRESS
from simulator.controlplane.ports import LOOPBACK
from simulator.controlplane.programs import SERVICE_ADDRESS

if TYPE_CHECKING:
    from pathlib import Path

HTTPS = 443
PODS = "192.0.2.128/25"


def bring_up() -> None:
    """
    Give the machine its addresses.
    """
    for arguments in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{NODE_ADDRESS}/32", "dev", "lo"),
        ("address", "add", f"{SERVICE_ADDRESS}/32", "dev", "lo"),
    ):
        subprocess.run(["ip", *arguments], check=True)


def serve_pods(port: int) -> subprocess.Popen[bytes]:
    """
    Open the way from the Service's address to the API server's port.
    """
    with socket.create_server((SERVICE_ADDRESS, HTTPS)) as listening:
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", str(door.SCRIPT)),
                *(str(listening.fileno()), LOOPBACK, str(port)),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )


def write_pod_network(folder: Path) -> None:
    """
    Tell containerd to tie each pod to the machine by a pair of interfaces.
    """
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
