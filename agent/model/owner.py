"""
PURE. Whose a process is, as the kernel tells it.
"""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """
    What a cgroup path names.

    A static pod's UID is the hash its kubelet made up. No UID but a container: a neighbour of the
    reader, in the reader's own pod. No container: the pod's own cgroup.
    """

    pod_uid: str | None
    container_id: str | None


class Occupant(NamedTuple):
    """
    A living process: PID and start time together name it for ever.

    `started_by` is the last moment at which it can have started; the kernel counts in ticks.
    """

    pid: int
    started_ticks: int
    started_by: float
    owner: Owner | None
    command: str = ""
