"""The command line of the workload: exit codes, messages and how fast it starts."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.nvml.state import State
from tests.support.workload import Program

START_TIMES = 12
"""What a workload takes of the processor until it starts, in bare interpreters: seven today."""


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "T4")


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "words"),
    [
        (("exit 0",), {}, 0, ""),
        (("exit 42",), {}, 42, ""),
        (("jump",), {}, 2, '"jump" is no action'),
        (("--card", "9", "exit 0"), {}, 2, 'card: "9" is not there'),
        (("--context", "much", "exit 0"), {}, 2, '--context: "much" is not'),
        (("exit 0",), {"NVIDIA_VISIBLE_DEVICES": "none"}, 1, "no CUDA-capable device"),
        (
            ("--framework", "cupy", "exit 0"),
            {"CUPY_GPU_MEMORY_LIMIT": ""},
            1,
            "ValueError: invalid literal",
        ),
        (
            ("--framework", "torch", "exit 0"),
            {"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:"},
            134,
            "terminate called",
        ),
    ],
)
def test_an_end_has_a_code_and_a_reason(
    state: State, arguments: tuple[str, ...], variables: dict[str, str], code: int, words: str
) -> None:
    """A script ends as it says; a mistake, a missing card and bad settings end it before."""
    with Program(state.path, *arguments, variables=variables) as program:
        ended, complaint = program.end()

    assert code == ended
    assert words in complaint
    assert len(complaint.splitlines()) == bool(words)


def test_without_a_machine_it_is_said(tmp_path: Path) -> None:
    """A state file that is not there is named with the way to make one."""
    with Program(tmp_path / "nothing", "exit 0") as program:
        code, complaint = program.end()

    assert 1 == code
    assert "make one with: python -m simulator nvml create" in complaint


def test_the_first_line_tells_card_and_cap(state: State) -> None:
    """A person sees at once which card is used, what the cap is and where it comes from."""
    variables = {"FLAGS_gpu_memory_limit_mb": "2048"}
    with Program(state.path, "--framework", "paddle", "exit 0", variables=variables) as program:
        program.end()

    expected = f"paddle on Tesla T4 ({state.cards[0].uuid}): cap 2048 MiB"
    assert expected in program.lines[0]
    assert "(FLAGS_gpu_memory_limit_mb is 2048)" in program.lines[0]


def test_a_framework_on_the_cpu_says_so(state: State) -> None:
    """JAX goes on without the card, and the first line is the only place that says it."""
    variables = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "$(GPU_FRACTION)"}
    with Program(state.path, "--framework", "jax", "hold 2Gi; exit 0", variables=variables) as one:
        code, _ = one.end()

    assert 0 == code
    assert "falling back to cpu" in one.lines[0]
    assert "hold 2Gi: 0 MiB on the card" in one.lines[1]


def test_it_starts_fast(state: State) -> None:
    """A workload costs so little to start that a node of them can be started at once."""
    workload = ("-m", "simulator", "workload", "--state", str(state.path), "exit 0")

    def processor_seconds(*arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        subprocess.run(command, env={}, capture_output=True, check=True)  # nor coverage in it
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    least, bare = (
        min(processor_seconds(*arguments) for _ in range(5)) for arguments in (workload, ("-c", ""))
    )

    assert least < START_TIMES * bare


def test_the_help_teaches_the_language(tmp_path: Path) -> None:
    """The help has the whole grammar."""
    with Program(tmp_path, "--help") as program:
        program.end()
    text = "\n".join(program.lines)

    assert '"grow" SIZE "/s" "to" SIZE' in text
    assert "--on-oom" in text
