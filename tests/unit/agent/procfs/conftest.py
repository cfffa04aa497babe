"""A folder shaped like /proc, with a made process or a true one."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.agent.procfs.test_lookup import OURS, write


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Return a /proc with process 17 in a container."""
    write(tmp_path)
    return tmp_path


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show a true process of a container in a folder whose PIDs are those of the kernel."""
    with subprocess.Popen(["sleep", "60"]) as process:
        folder = tmp_path / f"{process.pid}"
        folder.mkdir()
        (tmp_path / "self").symlink_to("/proc/self")
        (folder / "stat").symlink_to(f"/proc/{process.pid}/stat")
        (folder / "cgroup").write_text(OURS)
        yield process
        process.kill()
