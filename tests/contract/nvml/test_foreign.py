"""
Foreign programs that know nothing of the simulator: whatever they trip over is a fault of ours.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.nvml.build import environment
from simulator.nvml.state import State

SECONDS = 30


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[State, list[int]]]:
    """A machine with a whole card, a cut one and three real processes on them."""
    state = State.create(tmp_path_factory.mktemp("foreign") / "cards", "T4,A100-40:3g.20gb+1g.5gb")
    scripts = (("0", "hold 2Gi; busy 63%"), ("0", "hold 1Gi"), ("1:0", "hold 4Gi"))
    command = [sys.executable, "-m", "simulator", "workload", "--state", str(state.path)]
    processes = [
        subprocess.Popen([*command, "--card", card, script], stdout=-1, text=True)
        for card, script in scripts
    ]
    for process in processes:
        assert process.stdout is not None
        while "holding on" not in process.stdout.readline():
            pass
    yield state, [process.pid for process in processes]
    for process in processes:
        process.terminate()
        process.communicate()


def run(state: State, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **environment(state.path), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_nvitop_shows_cards_instances_and_processes(busy: tuple[State, list[int]]) -> None:
    """
    A screen of nvitop has every card, instance and process with its memory, without a complaint.
    """
    state, (first, second, third) = busy
    done = run(state, "nvitop", "-1")
    lines = done.stdout.splitlines()

    def line_with(*words: str) -> str:
        found = [line for line in lines if all(word in line for word in words)]
        return found[0] if found else ""

    assert (0, "") == (done.returncode, done.stderr)
    assert line_with("0", "Tesla T4", "00000000:04:00.0")
    assert line_with("3072MiB / 15360MiB", "63%")
    assert line_with("1:0", "3g.20gb", "GI/CI: 1/0", "4096MiB / 20096MiB")
    assert line_with(str(first), "2048MiB")
    assert line_with(str(second), "1024MiB")
    assert line_with("1:0", str(third), "4096MiB")


def test_gpustat_agrees(busy: tuple[State, list[int]]) -> None:
    """The cards and processes of gpustat's machine-readable output are the simulated ones."""
    state, (first, second, _) = busy
    done = run(state, "gpustat", "--json")
    card, cut = json.loads(done.stdout)["gpus"]

    assert ("Tesla T4", 15360, 63) == (
        card["name"],
        card["memory.total"],
        card["utilization.gpu"],
    )
    assert {first: 2048, second: 1024} == {
        process["pid"]: process["gpu_memory_usage"] for process in card["processes"]
    }
    assert ("NVIDIA A100-SXM4-40GB", None) == (cut["name"], cut["utilization.gpu"])


def test_nvitop_copes_with_an_older_driver(busy: tuple[State, list[int]]) -> None:
    """With entries of 32 bytes nvitop, which knows about them, still shows the right processes."""
    state, (first, *_) = busy
    done = subprocess.run(
        [sys.executable, "-m", "nvitop", "-1"],
        env={**os.environ, **environment(state.path, "535.43")},
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )

    assert [True] == [
        "2048MiB" in line for line in done.stdout.splitlines() if f" {first} " in line
    ]


def test_the_shell_verbs_work_end_to_end(tmp_path: Path) -> None:
    """What `create` prints is all that a shell needs to start a client."""
    script = (
        f'eval "$({sys.executable} -m simulator nvml create --cards 2xL4 {tmp_path}/cards)" && '
        f"{sys.executable} -m gpustat --json"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert ["NVIDIA L4"] * 2 == [card["name"] for card in json.loads(done.stdout)["gpus"]]
