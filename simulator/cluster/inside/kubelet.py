"""
How the kubelet of the one node is told to run.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from simulator.cluster.inside.containerd import SOCKET
from simulator.cluster.setup import NODE_ADDRESS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_config(folder: Path, authority: Path, cgroup: str) -> str:
    """
    Write the configuration: as in any cluster where it matters, calm where a test only waits.
    """
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        # The machine may still use version 1, as this project's agent must cope with too.
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "podLogsDir": str(folder / "logs"),
        "resolvConf": "",
        # The disk is the person's own: it is neither ours to tidy up nor a reason to evict.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        # How soon a renewed Secret shows in its volume; by default a minute.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "5s",
        "volumePluginDir": str(folder / "volume-plugins"),
        "healthzBindAddress": "127.0.0.1",
    }
    return json.dumps(configuration, indent=2)


def command(program: Path, folder: Path, node: str, labels: Mapping[str, str]) -> list[str]:
    """
    Put the program and what only its command line can say together.
    """
    said = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return [
        str(program),
        f"--config={folder / 'config.json'}",
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--root-dir={folder / 'root'}",
        f"--cert-dir={folder / 'pki'}",
        f"--hostname-override={node}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-labels={said}",
    ]
