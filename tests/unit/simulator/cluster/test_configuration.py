"""
What containerd and the kubelet are told.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from simulator.cluster.inside.containers import RuntimeFacts, write_config
from simulator.cluster.inside.isolation import write_pod_network
from simulator.cluster.inside.keeper import kubelet_command, kubelet_config

FOLDER = Path("/folder")


def configured(*, overlay: bool = True, limited: bool = False) -> dict[str, Any]:
    """
    Read back containerd's configuration.
    """
    runtime = RuntimeFacts(
        folder=FOLDER,
        networks=FOLDER / "networks",
        plugins=Path("/usr/lib/cni"),
        overlay=overlay,
        limited=limited,
    )
    return tomllib.loads(write_config(runtime))


def told(**said: Any) -> dict[str, Any]:
    """
    Return the runtime's part of the configuration.
    """
    part: dict[str, Any] = configured(**said)["plugins"]["io.containerd.grpc.v1.cri"]
    return part


def test_containerd_keeps_to_its_folder() -> None:
    """
    Everything that lasts is in the cluster's folder, everything else in a /run of its own.
    """
    configuration = configured()

    assert "/folder/root" == configuration["root"]
    assert "/run/containerd" == configuration["state"]
    assert "/folder/opt" == configuration["plugins"]["io.containerd.internal.v1.opt"]["path"]


def test_layers_are_mounted_where_that_works() -> None:
    """
    Where overlays do not work, layers are copied.
    """
    assert "overlayfs" == told()["containerd"]["snapshotter"]
    assert "native" == told(overlay=False)["containerd"]["snapshotter"]


def test_a_limited_root_leaves_oom_scores_alone() -> None:
    """
    A root that may not lower OOM scores does not try.
    """
    assert told(limited=True)["restrict_oom_score_adj"]
    assert not told()["restrict_oom_score_adj"]


def test_pods_have_the_network_that_is_written(tmp_path: Path) -> None:
    """
    The network's file is where containerd looks, and its state vanishes with /run.
    """
    write_pod_network(tmp_path / "networks")
    (file,) = (tmp_path / "networks").iterdir()
    (plugin,) = json.loads(file.read_text())["plugins"]

    assert "/folder/networks" == told()["cni"]["conf_dir"]
    assert ("ptp", "/run/cni") == (plugin["type"], plugin["ipam"]["dataDir"])


def test_the_kubelet_trusts_nobody_without_a_certificate() -> None:
    """
    Whoever calls the kubelet is asked who he is, and the API server whether he may.
    """
    said = json.loads(kubelet_config(FOLDER, Path("/ca.crt"), "/group"))

    assert {"enabled": False} == said["authentication"]["anonymous"]
    assert {"clientCAFile": "/ca.crt"} == said["authentication"]["x509"]
    assert {"mode": "Webhook"} == said["authorization"]
    assert "/group" == said["cgroupRoot"]


def test_the_kubelet_is_told_its_node() -> None:
    """
    Name, address and labels are the machine's words, not the host's.
    """
    command = kubelet_command(Path("/bin/kubelet"), FOLDER, "gpu-1", {"b": "2", "a": "1"})

    assert "/bin/kubelet" == command[0]
    assert {"--hostname-override=gpu-1", "--node-ip=192.0.2.10", "--node-labels=a=1,b=2"} <= set(
        command
    )
