"""
PURE. The cgroup line of a container, as kubelet, systemd and containerd name it on a v2 host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.names import STATIC_HASH

if TYPE_CHECKING:
    from simulator.node.pod import Pod

GUARANTEED = "Guaranteed"


def cgroup_line(pod: Pod, container_id: str) -> str:
    """
    Return the only line of /proc/PID/cgroup. A Guaranteed pod has no level for its class.
    """
    uid = pod.annotations.get(STATIC_HASH, pod.uid).replace("-", "_")
    top, quality = "kubepods", pod.quality.lower()
    scope = f"cri-containerd-{container_id}.scope"
    if pod.quality == GUARANTEED:
        return f"0::/{top}.slice/{top}-pod{uid}.slice/{scope}\n"
    return f"0::/{top}.slice/{top}-{quality}.slice/{top}-{quality}-pod{uid}.slice/{scope}\n"
