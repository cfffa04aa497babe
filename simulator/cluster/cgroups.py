"""
A control group for everything that one cluster runs, in every hierarchy of the machine.

Groups are the one thing that outlives the machine's namespaces; so whoever ends a cluster removes
its groups, and whoever starts one removes those that were left behind.
"""

from __future__ import annotations

import time
from pathlib import Path

from simulator.cluster.setup import MachineError

ROOT = Path("/sys/fs/cgroup")
REMOVAL_SECONDS = 10.0
_POLL_SECONDS = 0.05
_INHERITED = ("cpuset.mems", "cpuset.cpus")


def hierarchies(root: Path = ROOT) -> list[Path]:
    """List where groups can be made: one place with version 2, several with version 1."""
    if (root / "cgroup.controllers").exists():
        return [root]
    if not root.is_dir():
        return []
    # Some names are links to a hierarchy of several controllers.
    return sorted(
        path
        for path in root.iterdir()
        if not path.is_symlink() and (path / "cgroup.procs").exists()
    )


def make(name: str, root: Path = ROOT) -> None:
    """Make the group that a kubelet expects to find."""
    for hierarchy in hierarchies(root):
        group = hierarchy / name
        group.mkdir()
        for setting in _INHERITED:
            # Version 1 leaves it empty in a new group, which then can hold no process.
            if (group / setting).exists() and "cgroup.controllers" not in _names(hierarchy):
                (group / setting).write_text((hierarchy / setting).read_text())


def remove(name: str, root: Path = ROOT, seconds: float = REMOVAL_SECONDS) -> None:
    """Remove the group and all below it, waiting for the last process to leave."""
    deadline = time.monotonic() + seconds
    for hierarchy in hierarchies(root):
        while (group := hierarchy / name).exists() and not _removed(group):
            if time.monotonic() > deadline:
                raise MachineError(
                    f"group {group} still has processes {seconds:.0f} s after the end of its"
                    " cluster; end those, then start another cluster, which removes it"
                )
            time.sleep(_POLL_SECONDS)


def leftovers(prefix: str, root: Path = ROOT) -> set[str]:
    return {path.name for one in hierarchies(root) for path in one.glob(f"{prefix}*")}


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _removed(group: Path) -> bool:
    """Remove a tree of groups from its leaves on, as far as that goes."""
    below = sorted((path for path in group.rglob("*/") if path.is_dir()), reverse=True)
    try:
        for path in [*below, group]:
            path.rmdir()
    except OSError:
        return False
    return True
