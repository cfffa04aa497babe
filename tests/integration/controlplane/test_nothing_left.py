"""A control plane leaves no process, no port and no file, whatever ends it."""

import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from simulator.controlplane import Assets, ControlPlane, PlaneOptions, StartError
from simulator.controlplane.folders import sweep
from simulator.progress import Progress
from tests.support.observing import eventually, processes_naming

CALLER = """
import os, sys
from simulator.controlplane import Assets, ControlPlane
plane = ControlPlane.start(Assets.from_environment(os.environ))
print(plane.folder, plane.url, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    A folder for temporary files that only this test uses, in this process and those it starts.
    """
    folder = tmp_path_factory.mktemp("t")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def is_free(url: str) -> bool:
    """Tell whether the port of an address can be taken by anybody."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", urlsplit(url).port))
        except OSError:
            return False
    return True


def go_through(assets: Assets, cycles: int, options: PlaneOptions) -> list[str]:
    """Start and stop so many times; return what was found left over."""
    left: list[str] = []
    for _ in range(cycles):
        with ControlPlane.start(assets, options) as plane:
            plane.kubectl("get", "namespaces")
            plane.stop()  # and once more at the end of the block, which is no mistake
        left.extend(f"process {number}" for number in processes_naming(str(plane.folder)))
        if not is_free(plane.url):
            left.append(plane.url)
        left.extend(str(path) for path in Path(tempfile.gettempdir()).iterdir())
    return left


def start_elsewhere() -> tuple[subprocess.Popen[str], Path, str]:
    """Start a control plane in a process of its own."""
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert caller.stdout is not None
    folder, url = caller.stdout.readline().split()
    return caller, Path(folder), url


@pytest.mark.nightly
@pytest.mark.usefixtures("temporary")
def test_three_cycles_leave_nothing(assets: Assets) -> None:
    """Started and stopped three times, no process, port or file is left."""
    assert [] == go_through(assets, 3, PlaneOptions())


@pytest.mark.soak
@pytest.mark.usefixtures("temporary")
def test_twenty_cycles_leave_nothing(assets: Assets) -> None:
    """Started and stopped twenty times with all its parts, no process, port or file is left."""
    assert [] == go_through(assets, 20, PlaneOptions(scheduler=True, controller_manager=True))


def test_killed_caller_leaves_nothing(assets: Assets, temporary: Path) -> None:
    """When the process that started it is killed, all of it disappears."""
    del assets
    caller, folder, url = start_elsewhere()
    with caller:
        running = processes_naming(str(folder)) - {caller.pid}
        caller.send_signal(signal.SIGKILL)
        caller.wait(60)

    assert len(running) >= 4
    assert eventually(lambda: not processes_naming(str(folder)))
    assert eventually(lambda: not list(temporary.iterdir()))
    assert is_free(url)


@pytest.mark.nightly
def test_folder_is_swept_when_all_were_killed(assets: Assets, temporary: Path) -> None:
    """
    When even the wardens are killed, the folder goes at the next start, and not before its owner.
    """
    caller, folder, _ = start_elsewhere()
    with caller:
        assert [] == sweep(temporary)
        for number in processes_naming(str(folder)):
            os.kill(number, signal.SIGKILL)
        caller.kill()
        caller.wait(60)

    assert eventually(lambda: not processes_naming(str(folder)))
    said = io.StringIO()
    ControlPlane.start(assets, progress=Progress(said)).stop()

    assert f"removed {folder}, which" in said.getvalue()
    assert [] == list(temporary.iterdir())


def test_failed_start_leaves_nothing(assets: Assets, temporary: Path, tmp_path: Path) -> None:
    """A program that ends at once is told with its last words, and everything else is stopped."""
    broken = tmp_path / "assets"
    broken.mkdir()
    (broken / "kube-apiserver").write_text("#!/bin/sh\necho no such flag >&2\nexit 1\n")
    (broken / "kube-apiserver").chmod(0o755)
    given = Assets.from_environment({**assets.environment, "KUBEBUILDER_ASSETS": str(broken)})

    with pytest.raises(StartError, match=r"kube-apiserver ended before .*\nno such flag"):
        ControlPlane.start(given)
    assert [] == list(temporary.iterdir())


@pytest.mark.nightly
def test_named_folder_is_kept(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder that the caller named keeps logs and data for inspection."""
    folder = tmp_path_factory.mktemp("n")
    with ControlPlane.start(assets, PlaneOptions(folder=folder)):
        pass

    assert {"etcd", "etcd.log", "kube-apiserver.log"} <= {path.name for path in folder.iterdir()}
