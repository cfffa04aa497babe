"""PyTorch takes no more than the share, and starts CUDA no earlier than without us."""

from pathlib import Path

import pytest

from tests.contract.python_hook.standins import torch
from tests.contract.python_hook.worlds import SHARES, interpreters, said, start, write

START = "import torch; torch.cuda._lazy_init(); print(torch._C.calls)"
NEW, OLD = "2.13.0+cu130", "2.9.1+cu128"
MODERN = {name: path for name, path in interpreters().items() if not name.startswith("2.")}


CAP = "[(0.14, 0), ('device', 0)]"
ALL_CARDS = "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"
FRACTION = "per_process_memory_fraction:"
CUDA = "torch/cuda/__init__.py"
RENAMED = torch() | {CUDA: torch()[CUDA].replace("_lazy_call", "_later")}


def told(**setting: str) -> dict[str, str]:
    return {**SHARES, **setting}


@pytest.mark.parametrize(
    ("files", "environ", "calls"),
    [
        *(
            (torch(version), SHARES, CAP)
            for version in ("1.8.1+cu102", "2.9.1", "2.10.0", "2.15.0a0+gitd0f2af8", "x")
        ),
        (torch("1.7.1"), SHARES, "[]"),
        (RENAMED, SHARES, "[]"),
        (torch(), {}, "[]"),
        *(
            (torch(), {"GPUFENCE_MEMORY_FRACTION": value}, "[]")
            for value in ("", "0.000000", "1.5", "-0.1", "nan", "abc")
        ),
        *(
            (torch(), told(**{variable: setting}), CAP.replace("0.14", cap))
            for variable, setting, cap in (
                ("PYTORCH_ALLOC_CONF", f"expandable_segments:True,{FRACTION}0.05", "0.05"),
                ("PYTORCH_ALLOC_CONF", "a:1, per_process_memory_fraction : 0.05", "0.05"),
                ("PYTORCH_CUDA_ALLOC_CONF", f"{FRACTION}0.05", "0.05"),
                ("PYTORCH_CUDA_ALLOC_CONF", f"{FRACTION}0.9", "0.14"),
                ("PYTORCH_ALLOC_CONF", FRACTION, "0.14"),
                ("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2]", "0.14"),
            )
        ),
        (torch(NEW, count=3), SHARES, ALL_CARDS),
        (torch(NEW, count=3), told(LOCAL_RANK="2"), ALL_CARDS),
        (torch(OLD, count=3), SHARES, ALL_CARDS),
        (torch(OLD, count=3), told(LOCAL_RANK="2"), "[(0.14, 2), ('device', 0)]"),
        (torch(OLD, count=3), told(SLURM_LOCALID="1"), "[(0.14, 1), ('device', 0)]"),
        (torch(OLD, count=3), told(LOCAL_RANK="9"), ALL_CARDS),
        (torch(OLD, count=3), told(LOCAL_RANK="x"), ALL_CARDS),
        (torch("unknown", count=3), told(LOCAL_RANK="1"), "[(0.14, 1), ('device', 0)]"),
    ],
)
def test_what_the_allocator_is_told_when_cuda_starts(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], calls: str
) -> None:
    """
    Every torch since 1.8 tells its allocator the share, or the smaller fraction of its own setting,
    unless it cannot be read; of several cards those are capped that cost no context.
    """
    world = write(tmp_path, files)

    assert calls == said(start("-c", START, path=(world,), environ=environ))


@pytest.mark.parametrize(
    ("setting", "calls"), [("", "[]"), (f"{FRACTION}0.2", CAP.replace("0.14", "0.2"))]
)
@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_a_server_that_plans_gets_the_setting_alone(
    tmp_path: Path, server: str, setting: str, calls: str
) -> None:
    """
    A server that plans for its own share is capped by what the webhook gave its allocator, or not.
    """
    world = write(tmp_path, {**torch(), f"{server}/__init__.py": ""})
    environ = told(PYTORCH_ALLOC_CONF=setting)

    assert calls == said(start("-c", f"import {server}; {START}", path=(world,), environ=environ))


@pytest.mark.parametrize("python", MODERN.values(), ids=MODERN)
def test_every_interpreter_since_3_6_sets_the_cap(tmp_path: Path, python: str) -> None:
    """The hook works in each Python that the frameworks run on."""
    world = write(tmp_path, torch())
    told = said(start("-c", START, path=(world,), python=python))

    assert "[(0.14, 0), ('device', 0)]" == told


def test_importing_torch_leaves_cuda_alone(tmp_path: Path) -> None:
    """CUDA is as little initialised after the import as without the hook."""
    code = "import torch; print(torch.cuda.is_initialized(), torch._C.calls)"

    assert "False []" == said(start("-c", code, path=(write(tmp_path, torch()),)))


def test_a_program_may_ask_for_less_only(tmp_path: Path) -> None:
    """The program's own call lowers the cap and cannot raise it, by either of its names."""
    code = (
        f"{START}\nfor place in (torch.cuda, torch.cuda.memory):\n"
        "    for asked in (0.05, 0.14, 0.9, 1.0):\n"
        "        place.set_per_process_memory_fraction(asked); print(torch._C.calls[-1])"
    )
    told = said(start("-c", code, path=(write(tmp_path, torch()),)))

    assert ["(0.05, 0)", *["(0.14, 0)"] * 3] * 2 == told.splitlines()[1:]


@pytest.mark.parametrize(
    ("asked", "error"), [("2.0", "ValueError"), ("-1.0", "ValueError"), ("1", "TypeError")]
)
def test_a_wrong_fraction_fails_as_ever(tmp_path: Path, asked: str, error: str) -> None:
    """What torch refuses it still refuses, in its own words."""
    code = f"import torch; torch.cuda.set_per_process_memory_fraction({asked})"
    result = start("-c", code, path=(write(tmp_path, torch()),))

    assert error in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("error", ["RuntimeError('no device')", "AssertionError", "MemoryError"])
def test_an_allocator_that_refuses_stops_nobody(tmp_path: Path, error: str) -> None:
    """CUDA starts although the cap could not be set."""
    code = "import torch; torch.cuda._lazy_init(); print(torch.cuda.is_initialized())"
    world = write(tmp_path, torch(failing=error))

    assert "True" == said(start("-c", code, path=(world,)))


def test_a_torch_that_cannot_be_imported_fails_as_ever(tmp_path: Path) -> None:
    """An error of torch's own import reaches the program."""
    files = {**torch(), "torch/cuda/__init__.py": "raise OSError('libcudart.so.12')"}
    result = start("-c", "import torch", path=(write(tmp_path, files),))

    assert "OSError: libcudart.so.12" == result.stderr.splitlines()[-1]


CHILD = """
import multiprocessing, torch
def work():
    torch.cuda.set_device(2)
    torch.cuda.set_device(2)
    print(torch._C.calls)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
"""


def test_a_child_is_capped_on_the_card_it_chooses(tmp_path: Path) -> None:
    """One of several processes without a rank makes no context on a card that it did not choose."""
    world = write(tmp_path, {**torch(OLD, count=3), "train.py": CHILD})
    told = said(start(str(world / "train.py"), path=(world,)))

    assert "[('device', 0), ('device', 2), (0.14, 2), ('device', 2)]" == told
