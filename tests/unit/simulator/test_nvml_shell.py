"""The verbs of `python -m simulator nvml`."""

import os
from pathlib import Path

import pytest

from simulator.nvml import __main__ as shell
from simulator.nvml.state import State


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cards"
    State.create(path, "T4,L4")
    return path


def run(*words: object) -> int:
    return shell.main([str(word) for word in words])


def test_a_process_can_be_put_and_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was put on a card shows."""
    run("put", path, "--card", 1, "--pid", os.getpid(), "--memory", "3Gi", "--lists", "mps")
    run("show", path)

    assert f"PID {os.getpid()}: 3072 MiB, mps" in capsys.readouterr().out


def test_faults_come_and_go(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault is numbered when made and removed by that number or with all others."""
    run("fault", path, "return", "gpu_is_lost", "--card", 1)
    run("fault", path, "delay", 5000, "--function", "nvmlInit", "--after", 1)
    run("show", path)
    shown = capsys.readouterr().out
    run("clear", path, 0)
    run("show", path)
    fewer = capsys.readouterr().out
    run("clear", path)
    run("show", path)

    assert "fault 0: return 15 in * on the card at place 1" in shown
    assert "fault 1: delay 5000 in nvmlInit on every card, after 1 calls" in shown
    assert "fault 0" not in fewer
    assert "fault 1" in fewer
    assert "fault" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("put", "--card", "9", "--pid", "1", "--memory", "1Gi"), 'card: "9" is not there'),
        (("put", "--card", "0", "--pid", "1", "--memory", "1Gx"), '--memory: "1Gx" is not'),
        (("put", "--card", "0", "--pid", "1", "--memory", "99Gi"), "out of memory"),
        (("fault", "hang", "--function", "nvmlInitt"), "perhaps nvmlInit was meant"),
    ],
)
def test_what_cannot_be_is_one_line(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    """A mistake is answered with one line and exit code 1."""
    code = run(words[0], path, *words[1:])
    captured = capsys.readouterr()

    assert 1 == code
    assert 1 == len(captured.err.splitlines())
    assert complaint in captured.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("put", "--card", "0", "--pid", "1", "--memory", "1", "--lists", "x"), "is none of"),
        (("fault", "return", "gpu"), "neither a number nor a code"),
        (("melt",), "invalid choice"),
    ],
)
def test_wrong_words_are_usage_errors(
    path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str
) -> None:
    """Words outside the grammar end with the usage and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        run(words[0], path, *words[1:])

    assert 2 == ended.value.code
    assert complaint in capsys.readouterr().err


def test_a_program_of_cuda_is_told_more(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for CUDA, what a client needs includes the driver's folder and the runtime."""
    run("env", path)
    plain = capsys.readouterr().out
    run("env", path, "--cuda", 13)
    more = capsys.readouterr().out

    assert "LD_PRELOAD" not in plain
    assert "libcudart.so.13" in more
    assert "/cuda-" in more.split("LD_LIBRARY_PATH=")[1].split(":")[0]
