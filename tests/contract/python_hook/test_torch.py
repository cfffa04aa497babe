"""PyTorch takes no more than the share, and starts CUDA no earlier than without us."""

from pathlib import Path

import pytest

from tests.contract.python_hook.standins import torch
from tests.contract.python_hook.worlds import SHARES, interpreters, said, start, write

START = "import torch; torch.cuda._lazy_init(); print(torch._C.calls)"
NEW, OLD = "2.13.0+cu130", "2.9.1+cu128"
MODERN = {name: path for name, path in interpreters().items() if not name.startswith("2.")}


@pytest.mark.parametrize("version", ["1.8.1+cu102", "2.9.1", "2.10.0", "2.15.0a0+gitd0f2af8", "x"])
def test_the_cap_is_set_when_cuda_starts(tmp_path: Path, version: str) -> None:
    """Every torch since 1.8 tells its allocator the share as CUDA starts."""
    world = write(tmp_path, torch(version))

    assert "[(0.14, 0), ('device', 0)]" == said(start("-c", START, path=(world,)))


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


def test_torch_before_1_8_is_left_alone(tmp_path: Path) -> None:
    """An allocator that knows no cap is not asked for one."""
    assert "[]" == said(start("-c", START, path=(write(tmp_path, torch("1.7.1")),)))


@pytest.mark.parametrize("value", [None, "", "0.000000", "1.5", "-0.1", "nan", "abc"])
def test_an_unreadable_share_changes_nothing(tmp_path: Path, value: str | None) -> None:
    """Without a share between zero and one there is no cap, and no complaint."""
    environ = {} if value is None else {"GPUFENCE_MEMORY_FRACTION": value}
    world = write(tmp_path, torch())

    assert "[]" == said(start("-c", START, path=(world,), environ=environ))


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


@pytest.mark.parametrize(
    ("variable", "setting", "cap"),
    [
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True,per_process_memory_fraction:0.05", 0.05),
        ("PYTORCH_ALLOC_CONF", "max_split_size_mb:64, per_process_memory_fraction : 0.05", 0.05),
        ("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.05", 0.05),
        ("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.9", 0.14),
        ("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:", 0.14),
        ("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2]", 0.14),
    ],
)
def test_the_smaller_of_setting_and_share_counts(
    tmp_path: Path, variable: str, setting: str, cap: float
) -> None:
    """
    A fraction in the allocator's own setting is kept where it is smaller, also where torch is blind
    to it.
    """
    environ = {**SHARES, variable: setting}
    told = said(start("-c", START, path=(write(tmp_path, torch()),), environ=environ))

    assert told.startswith(f"[({cap}, 0)")


@pytest.mark.parametrize(
    ("setting", "calls"),
    [("", "[]"), ("per_process_memory_fraction:0.2", "[(0.2, 0), ('device', 0)]")],
)
@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_a_server_that_plans_gets_the_setting_alone(
    tmp_path: Path, server: str, setting: str, calls: str
) -> None:
    """
    A server that plans for its own share is capped by what the webhook gave its allocator, or not.
    """
    world = write(tmp_path, {**torch(), f"{server}/__init__.py": ""})
    environ = {**SHARES, "PYTORCH_ALLOC_CONF": setting}

    assert calls == said(start("-c", f"import {server}; {START}", path=(world,), environ=environ))


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


def test_a_torch_without_a_queue_is_left_alone(tmp_path: Path) -> None:
    """A torch whose private parts have other names is imported as ever."""
    files = torch()
    renamed = files["torch/cuda/__init__.py"].replace("_lazy_call", "_later")
    world = write(tmp_path, {**files, "torch/cuda/__init__.py": renamed})

    assert "[]" == said(start("-c", START, path=(world,)))


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


@pytest.mark.parametrize(
    ("version", "environ", "calls"),
    [
        (NEW, {}, "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"),
        (NEW, {"LOCAL_RANK": "2"}, "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"),
        (OLD, {}, "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"),
        (OLD, {"LOCAL_RANK": "2"}, "[(0.14, 2), ('device', 0)]"),
        (OLD, {"SLURM_LOCALID": "1"}, "[(0.14, 1), ('device', 0)]"),
        (OLD, {"LOCAL_RANK": "9"}, "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"),
        (OLD, {"LOCAL_RANK": "x"}, "[(0.14, 0), (0.14, 1), (0.14, 2), ('device', 0)]"),
        ("unknown", {"LOCAL_RANK": "1"}, "[(0.14, 1), ('device', 0)]"),
    ],
)
def test_of_several_cards_those_are_capped_that_cost_nothing(
    tmp_path: Path, version: str, environ: dict[str, str], calls: str
) -> None:
    """
    A torch whose cap costs a context caps a rank's own card only; the current card stays current.
    """
    world = write(tmp_path, torch(version, count=3))

    assert calls == said(start("-c", START, path=(world,), environ=SHARES | environ))


def test_a_child_is_capped_on_the_card_it_chooses(tmp_path: Path) -> None:
    """One of several processes without a rank makes no context on a card that it did not choose."""
    world = write(tmp_path, {**torch(OLD, count=3), "train.py": CHILD})
    told = said(start(str(world / "train.py"), path=(world,)))

    assert "[('device', 0), ('device', 2), (0.14, 2), ('device', 2)]" == told
