"""How a program of a framework is started so that it finds simulated cards."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from simulator.compiled import default_cache
from simulator.cuda.build import environment
from simulator.nvml.build import LIBRARY_VARIABLE
from simulator.wheels.install import WheelsError, packages_of, python_of
from simulator.wheels.stand_ins import stand_ins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.wheels.catalog import WheelSet

VISIBLE = "CUDA_VISIBLE_DEVICES"
ROOT = Path(__file__).resolve().parents[2]
# Ours comes last on the path and the working folder not at all: nothing stands in for a module of
# the framework's.
_RUN_OURS = (
    "import sys; sys.path.append(sys.argv.pop(1)); from runpy import run_module;"
    " run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
DEVICE_FILE = Path("/dev/nvidiactl")
NEEDS_DEVICE_FILE = frozenset({"jax"})
"""JAX looks for a device file before it looks for a driver."""

_NAMESPACES = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
_OWN_DEV = """
set -e
d=$(mktemp -d)
mount -t tmpfs -o mode=755 none "$d"
for n in null zero full random urandom tty; do : > "$d/$n"; mount --bind "/dev/$n" "$d/$n"; done
for n in shm pts; do mkdir "$d/$n"; mount --rbind "/dev/$n" "$d/$n"; done
ln -s /proc/self/fd "$d/fd"
: > "$d/nvidiactl"
mount --rbind "$d" /dev
umount --lazy "$d"
rmdir "$d"
exec "$@"
"""


def variables(
    wheels: WheelSet, state: Path, own: Mapping[str, str], *, cache_folder: Path | None = None
) -> dict[str, str]:
    """
    Return a program's variables: its own, and what makes it find driver, runtime and libraries.
    """
    root = cache_folder or default_cache()
    packages = packages_of(wheels, root)
    cards = environment(state, cuda=wheels.cuda, cache=root)
    paths = [cards[LIBRARY_VARIABLE], *map(str, sorted(packages.glob("nvidia/*/lib")))]
    if wheels.stand_ins:
        paths.append(str(stand_ins(wheels.stand_ins, packages, root)))
    kept = own.get(LIBRARY_VARIABLE, "")
    return {**own, **cards, LIBRARY_VARIABLE: ":".join([*paths, *([kept] if kept else [])])}


def command(
    wheels: WheelSet, arguments: tuple[str, ...], *, cache_folder: Path | None = None
) -> list[str]:
    """
    Return the command that runs the environment's Python with these arguments, in this process.
    """
    words = [str(python_of(wheels, cache_folder)), *arguments]
    if wheels.framework not in NEEDS_DEVICE_FILE or DEVICE_FILE.exists():
        return words
    return [*namespace(), "sh", "-c", _OWN_DEV, "sh", *words]


def ours(module: str, *arguments: str) -> tuple[str, ...]:
    """
    Return what Python is told so that it runs a module of this tree, which it has not installed.
    """
    return ("-P", "-c", _RUN_OURS, str(ROOT), module, *arguments)


@cache
def namespace() -> tuple[str, ...]:
    """Return the command that gives a program mounts of its own, as root or as anybody."""
    for prefix in _NAMESPACES:
        tried = [*prefix, "mount", "-t", "tmpfs", "none", "/mnt"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return prefix
    raise WheelsError(
        f"a program must find {DEVICE_FILE}, and this machine lets nobody make a mount namespace;"
        " allow user namespaces, or run as root"
    )


def visible(own: Mapping[str, str]) -> dict[str, str]:
    """
    Do what a container runtime does with the cards that a device plugin assigned.

    There they are all that a container has; here CUDA's own variable hides the others.
    """
    assigned = own.get("NVIDIA_VISIBLE_DEVICES", "all")
    return {} if assigned == "all" or VISIBLE in own else {VISIBLE: assigned}


def become(
    wheels: WheelSet, state: Path, arguments: tuple[str, ...], settings: Mapping[str, str]
) -> NoReturn:
    """Replace this process by a program of the framework."""
    own = {**os.environ, **visible(os.environ), **settings}
    words = command(wheels, arguments)
    os.execvpe(words[0], words, variables(wheels, state, own))  # noqa: S606 - no shell is wanted
