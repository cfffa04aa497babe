"""The cluster itself: nothing of it outlives it, however it ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator.cluster import cgroups
from simulator.cluster.cluster import PREFIX

pytestmark = pytest.mark.e2e

COMMAND = (sys.executable, "-m", "simulator", "cluster", "--node", "passing")


class Running:
    """A cluster in the foreground of nobody's terminal."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        first = self.process.stdout.readline().strip()
        self.folder = Path(first.partition("=")[2]).parent
        assert self.folder.name.startswith(PREFIX), first

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        self.process.communicate()
        return self.process.returncode


def traces(running: Running) -> list[str]:
    """List what the machine still knows of a cluster: folder, groups, mounts, processes."""
    name = running.folder.name
    found = [str(running.folder)] if running.folder.exists() else []
    found += sorted(cgroups.leftovers(name))
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if name in line]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_text().replace("\0", " ")
        except OSError:
            continue
        if name in command:
            found.append(command)
    return found


def eventually(running: Running) -> list[str]:
    """Give processes of a killed cluster some seconds to end, and list what then is left."""
    deadline = time.monotonic() + 20
    while traces(running) and time.monotonic() < deadline:
        time.sleep(0.2)
    return traces(running)


def interfaces() -> list[str]:
    """Name the machine's network interfaces."""
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def settings() -> list[str]:
    """Read the kernel settings that a kubelet would change."""
    return [
        Path("/proc/sys", name).read_text()
        for name in ("vm/overcommit_memory", "kernel/panic", "net/ipv4/ip_forward")
    ]


def places() -> list[bool]:
    """Look at the folders in which kubelets, runtimes and networks usually live."""
    usual = ("/var/lib/kubelet", "/var/lib/cni", "/etc/cni", "/var/lib/gpufence", "/opt/containerd")
    return [Path(place).exists() for place in usual]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_cluster_leaves_nothing(number: signal.Signals) -> None:
    """Told to stop, a cluster takes everything with it."""
    before = (interfaces(), settings(), places())
    running = Running()

    assert 0 == running.end(number)
    assert [] == traces(running)
    assert before == (interfaces(), settings(), places())


def test_a_killed_cluster_is_cleared_away() -> None:
    """What a killed cluster could not take with it, the next start or `--clean` removes."""
    before = (interfaces(), settings(), places())
    running = Running()
    running.end(signal.SIGKILL)

    subprocess.run([*COMMAND, "--clean"], check=True)

    assert [] == eventually(running)
    assert before == (interfaces(), settings(), places())
