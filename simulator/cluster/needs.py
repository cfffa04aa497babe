"""What this machine must have before a cluster can be started on it, and what it can do."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.cluster import cgroups
from simulator.cluster.setup import NeedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.progress import Progress

PLUGIN_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
PLUGINS = ("ptp", "host-local", "loopback")
# Each program and the Debian package that has it.
PACKAGES = {
    "buildah": "buildah",
    "cc": "build-essential",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "unshare": "util-linux",
}
NETWORKING = "containernetworking-plugins"


@dataclass(frozen=True)
class Missing:
    """What is not there, and the Debian packages that bring it."""

    things: tuple[str, ...]
    packages: tuple[str, ...]


def search_path() -> str:
    """Return where programs are looked for; runc and ip are at times outside a user's PATH."""
    return f"{os.defpath}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin"


def missing(path: str | None = None) -> Missing:
    """Look for programs, on our search path or another, and for plugins."""
    looked = search_path() if path is None else path
    absent = [name for name in PACKAGES if shutil.which(name, path=looked) is None]
    packages = {PACKAGES[name] for name in absent}
    if not _plugins_found():
        absent.append(f"the network plugins {', '.join(PLUGINS)}")
        packages.add(NETWORKING)
    return Missing(tuple(absent), tuple(sorted(packages)))


def network_plugins() -> Path:
    folders = _plugins_found()
    if not folders:
        raise NeedError(f"no network plugins; on Debian: apt-get install {NETWORKING}")
    return folders[0]


def check() -> None:
    """Raise a NeedError that names everything that is missing, if anything is."""
    wrong = problems(os.geteuid(), missing(), cgroups.hierarchies())
    if wrong:
        raise NeedError("; moreover, ".join(wrong))
    _check_namespaces()


def problems(user: int, lacking: Missing, hierarchies: Sequence[Path]) -> list[str]:
    """Return what is wrong with a user and a machine, and what to do about it."""
    wrong = []
    if user != 0:
        wrong.append("a cluster of real containers needs root; run this as root")
    if lacking.things:
        wrong.append(
            f"missing: {', '.join(lacking.things)}; on Debian:"
            f" apt-get install {' '.join(lacking.packages)}, or --install"
        )
    if not hierarchies:
        wrong.append(f"no control groups in {cgroups.ROOT}; mount them there")
    return wrong


def install(environment: Mapping[str, str], progress: Progress) -> None:
    lacking = missing()
    if not lacking.packages:
        return
    if shutil.which("apt-get") is None:
        raise NeedError(
            f"missing: {', '.join(lacking.things)}; without apt-get nothing can be installed here"
        )
    with progress.step(f"installing {', '.join(lacking.packages)}"):
        _apt(environment, "update")
        _apt(environment, "install", "--yes", "--no-install-recommends", *lacking.packages)


def overlay_works(folder: Path) -> bool:
    """
    Return whether layers of files can be mounted upon each other in a folder: it depends on the
    kernel and on the file system there, so it is tried.
    """
    with tempfile.TemporaryDirectory(prefix="overlay-", dir=folder) as name:
        trial = Path(name)
        for part in ("lower", "upper", "work", "merged"):
            (trial / part).mkdir()
        options = f"lowerdir={trial}/lower,upperdir={trial}/upper,workdir={trial}/work"
        done = subprocess.run(
            # The mount ends with the namespace, and that with its only process.
            [
                *("unshare", "--mount", "mount", "-t", "overlay", "-o", options),
                *("overlay", f"{trial}/merged"),
            ],
            capture_output=True,
            check=False,
        )
        return done.returncode == 0


def _plugins_found() -> list[Path]:
    return [one for one in PLUGIN_FOLDERS if all((one / name).exists() for name in PLUGINS)]


def _check_namespaces() -> None:
    done = subprocess.run(
        ["unshare", "--fork", "--pid", "--mount", "--net", "--ipc", "--uts", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NeedError(
            f"no namespaces can be made here ({done.stderr.strip()}); run this on a machine, or in"
            " a container, with CAP_SYS_ADMIN"
        )


def _apt(environment: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        ["apt-get", "--quiet", *arguments],
        env={**environment, "DEBIAN_FRONTEND": "noninteractive", "PATH": search_path()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        words = "\n".join(done.stderr.splitlines()[-5:])
        raise NeedError(f"apt-get {arguments[0]} ended with {done.returncode}:\n{words}")
