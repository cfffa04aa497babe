"""`python -m simulator controlplane`, as a person runs it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulator.controlplane import Assets
from simulator.progress import Progress
from tests.support.observing import eventually, processes_naming


@contextmanager
def running(log: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run the command until it says how to reach it; give the process and the kubeconfig file."""
    call = [sys.executable, "-m", "simulator", "controlplane", *options]
    with (
        log.open("w") as said,
        subprocess.Popen(call, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            yield process, Path(line.removeprefix("export KUBECONFIG="))
        finally:
            process.kill()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_command_serves_until_stopped(assets: Assets, tmp_path: Path, ending: int) -> None:
    """The printed kubeconfig works with kubectl, and Ctrl-C or SIGTERM ends everything cleanly."""
    kubectl = assets.ensure(["kubectl"], Progress())["kubectl"]
    with running(tmp_path / "said") as (process, kubeconfig):
        call = [str(kubectl), "get", "namespaces", "--output=name"]
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path)}
        listed = subprocess.run(
            call, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        process.send_signal(ending)
        status = process.wait(60)

    assert "namespace/kube-system" in listed.stdout
    assert 0 == status
    assert not kubeconfig.parent.exists()
    assert "control plane ready in" in (tmp_path / "said").read_text()


def test_end_of_a_part_is_told(assets: Assets, tmp_path: Path) -> None:
    """When etcd dies the command ends too, and says which program it was."""
    del assets
    with running(tmp_path / "said") as (process, kubeconfig):
        for number in processes_naming(f"--data-dir={kubeconfig.parent}"):
            os.kill(number, signal.SIGKILL)
        status = process.wait(60)

    assert 1 == status
    assert "etcd ended; its last words" in (tmp_path / "said").read_text()
    assert eventually(lambda: not processes_naming(str(kubeconfig.parent)))
