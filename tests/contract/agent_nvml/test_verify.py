"""`gpufence-agent verify` on simulated cards: as assumed, or one assumption broken at a time."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from simulator.cuda.build import CONTEXT_MIB, environment
from simulator.nvml.faults import Fault, NvmlCode
from simulator.nvml.layout import FaultAction
from simulator.nvml.state import State
from tools import ROOT

LIST = "nvmlDeviceGetComputeRunningProcesses"
MPS_LIST = "nvmlDeviceGetMPSComputeRunningProcesses"
MPS = {"CUDA_MPS_PIPE_DIRECTORY": "/run/mps"}
slow = pytest.mark.nightly


def greedy(framework: str) -> str:
    """Return a program that grows beyond its cap, if its framework lets it."""
    script = "grow 2Gi/s to 6Gi"
    return f"torch={sys.executable} -m simulator workload --framework {framework} '{script}'"


def verify(
    folder: Path,
    *arguments: str,
    cards: str = "T4",
    fault: Fault | None = None,
    more: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    state = State.create(folder / "cards", cards)
    if fault is not None:
        state.faults.add(fault)
    command = [sys.executable, "-m", "agent", "verify", *arguments]
    variables = {**os.environ, **environment(state.path), **(more or {})}
    return subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


def differing(result: subprocess.CompletedProcess[str]) -> list[str]:
    found: list[dict[str, Any]] = json.loads(result.stdout)["assumptions"]
    return [item["assumption"][13:] for item in found if item["state"] == "differs"]


def test_cards_and_instances_are_as_assumed(tmp_path: Path) -> None:
    """Every assumption is there for a card and for an instance, with the facts; exit code 0."""
    result = verify(tmp_path, "-o", "json", cards="T4,A100-40:3g.20gb")
    document = json.loads(result.stdout)

    assert (0, "As assumed.") == (result.returncode, document["verdict"]), result.stdout
    assert 2 == result.stderr.count("trying card")
    assert [300 << 20] * 2 == [
        card["trial"]["context_bytes"] for card in document["facts"]["cards"]
    ]


@pytest.mark.parametrize(
    ("subject", "fault", "more"),
    [
        ("bytes of a process", Fault(FaultAction.DIVIDE, argument=1024), {}),
        pytest.param("bytes of a process", Fault(FaultAction.NOT_AVAILABLE), {}, marks=slow),
        ("CUDA context", None, {CONTEXT_MIB: "1536"}),
        ("MPS", Fault(FaultAction.KEEP, MPS_LIST), MPS),
        ("card", Fault(FaultAction.ZERO), {}),
        pytest.param("card", Fault.code(NvmlCode.NO_PERMISSION, LIST), {}, marks=slow),
        pytest.param("PIDs", Fault(FaultAction.SHIFT, argument=100_000), {}, marks=slow),
        pytest.param("processes that end", Fault(FaultAction.LINGER), {}, marks=slow),
        pytest.param("two processes", Fault(FaultAction.KEEP, argument=1), {}, marks=slow),
        pytest.param("a look", Fault.delay(0.3, LIST), {}, marks=slow),
    ],
)
def test_what_is_broken_is_found_alone(
    subject: str, fault: Fault | None, more: dict[str, str], tmp_path: Path
) -> None:
    """One broken assumption is one difference, and the program ends with 1."""
    result = verify(tmp_path, "-o", "json", fault=fault, more=more)

    assert ([subject], 1) == (differing(result), result.returncode), result.stdout


def test_a_cap_that_bites_is_as_assumed(tmp_path: Path) -> None:
    """A program that reads its cap is refused by its framework, and ends."""
    result = verify(tmp_path, "--program", greedy("torch"))

    assert 0 == result.returncode, result.stdout
    assert "As assumed.\n" in result.stdout


def test_a_cap_that_does_not_bite_is_found(tmp_path: Path) -> None:
    """A program that reads no cap takes what it wants, and is said to."""
    result = verify(tmp_path, "--program", greedy("none"))

    assert 1 == result.returncode
    assert "cap torch" in result.stdout
    assert "the program does not keep to it" in result.stdout


def test_mps_clients_that_are_listed_are_as_assumed(tmp_path: Path) -> None:
    """Where a daemon serves the card its clients are in NVML's list of them."""
    assert [] == differing(verify(tmp_path, "-o", "json", more=MPS))


def test_a_wrong_program_is_a_wrong_call(tmp_path: Path) -> None:
    """The error names the option, the value and the remedy."""
    result = verify(tmp_path, "--program", "tensorflow")

    assert 2 == result.returncode
    assert '--program: "tensorflow" names no framework; write one of torch' in result.stderr
