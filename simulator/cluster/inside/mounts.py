"""
Make the machine's file system the node's own, where a kubelet and containerd would change it.

All of it is in the mount namespace of this process, and gone with it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

# What a kubelet insists on (pkg/kubelet/cm, setupKernelTunables). It would change the whole
# machine, for good; instead it finds its wishes fulfilled.
SETTINGS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}


def arrange(folder: Path) -> None:
    """
    Hide the machine's /run and its kernel settings behind ones of our own.
    """
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
