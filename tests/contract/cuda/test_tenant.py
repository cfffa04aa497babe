"""
A workload that becomes a program of a framework's own Python: here one with a small framework that
allocates as PyTorch does, so that it needs none of the wheels.
"""

import signal
import venv
from pathlib import Path

import pytest

from simulator.nvml.state import State
from simulator.wheels.catalog import find_wheels
from simulator.wheels.install import folder_of, packages_of
from tests.support.workload import Program

SMALL_TORCH = """
import ctypes, os
__version__ = "2.15.0"
uint8 = None
runtime = ctypes.CDLL("libcudart.so.13")
allowed = [float(os.environ.get("GPUFENCE_MEMORY_FRACTION", 1))]
taken = [0]

class cuda:
    class OutOfMemoryError(RuntimeError):
        pass
    def is_available():
        return runtime.cudaGetDeviceCount(ctypes.byref(ctypes.c_int())) == 0
    def empty_cache():
        pass
    def set_per_process_memory_fraction(fraction):
        allowed[0] = fraction

class Tensor:
    def __init__(self, size):
        self.size, self.address = 0, ctypes.c_void_p()
        total = ctypes.c_size_t()
        runtime.cudaMemGetInfo(None, ctypes.byref(total))
        if taken[0] + size > allowed[0] * total.value:
            raise cuda.OutOfMemoryError("CUDA out of memory. More than is allowed.")
        if runtime.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)):
            raise cuda.OutOfMemoryError("CUDA out of memory. The card is full.")
        self.size = size
        taken[0] += size
    def __del__(self):
        taken[0] -= self.size
        runtime.cudaFree(self.address)

def empty(size, dtype, device):
    return Tensor(size)
"""


CAPPED = {"GPUFENCE_MEMORY_FRACTION": "0.1"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the newest PyTorch seems to be installed."""
    root = tmp_path_factory.mktemp("cache")
    wheels = find_wheels("torch")
    folder = folder_of(wheels, root / "gpufence")
    venv.create(folder, symlinks=True)
    package = packages_of(wheels, root / "gpufence") / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(SMALL_TORCH)
    (folder / ".built").write_text("".join(f"{one}\n" for one in wheels.requirements))
    return root


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.create(tmp_path / "cards", "2xT4")


def tenant(state: State, cache: Path, *arguments: str, **variables: str) -> Program:
    told = {"XDG_CACHE_HOME": str(cache), **variables}
    return Program(state.path, "--wheels", "torch", *arguments, variables=told)


def test_a_script_is_followed_on_the_card(state: State, cache: Path) -> None:
    """Steps allocate and free with the framework, and the process keeps its PID."""
    with tenant(state, cache, "--context", "400Mi", "hold 1Gi; shrink 512Mi; grow 1Gi") as program:
        program.until("grow 1Gi: 1936 MiB on the card")
        uses = [(use.pid, use.memory >> 20) for use in state.cards[0].uses]

        assert [(program.pid, 1936)] == uses
        assert any("hold 1Gi: 1424 MiB" in line for line in program.lines)
        assert any("shrink 512Mi: 912 MiB" in line for line in program.lines)


def test_a_patient_program_keeps_what_it_has(state: State, cache: Path) -> None:
    """Refused, a patient program goes on with what it has, until it is stopped."""
    with tenant(state, cache, "--on-oom", "wait", "hold 9Gi", **CAPPED) as program:
        program.until("Waiting for memory")
        held = [use.memory >> 20 for use in state.cards[0].uses]
        program.signal(signal.SIGTERM)
        code, _ = program.end()

    assert [300 + 1472] == held
    assert 143 == code
    assert () == state.cards[0].uses


def test_a_program_uses_the_card_it_was_assigned(state: State, cache: Path) -> None:
    """A card that a device plugin assigned is the only one there is."""
    told = {"NVIDIA_VISIBLE_DEVICES": state.cards[1].uuid}
    with tenant(state, cache, "hold 1Gi", **told) as program:
        program.until("hold 1Gi: 1324 MiB")

        assert () == state.cards[0].uses
        assert [program.pid] == [use.pid for use in state.cards[1].uses]


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "said"),
    [
        (("hold 9Gi; exit 0",), CAPPED, 1, "CUDA out of memory. More than is allowed."),
        (("hold 9Gi; exit 0",), CAPPED, 1, "(refused at 1472 MiB)"),
        (("--uncap", "hold 9Gi; exit 0"), CAPPED, 0, ""),
        (
            ("hold 1Gi",),
            {"NVIDIA_VISIBLE_DEVICES": "none"},
            1,
            "torch.cuda.is_available() is False",
        ),
        (("hold 1Gi; busy 50",), {}, 2, '"busy 50" cannot be done with a real framework'),
        (("hold 1Gi; fork 2",), {}, 2, '"fork 2" cannot be done with a real framework'),
        (("hold 1Gi; hold 1Gi managed",), {}, 2, "cannot be done with a real framework"),
    ],
)
def test_how_a_tenant_ends(
    state: State,
    cache: Path,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    code: int,
    said: str,
) -> None:
    """By the framework's own words, which a cap brings, or before anything that cannot be done."""
    with tenant(state, cache, *arguments, **variables) as program:
        ended, complaint = program.end()

    assert code == ended
    assert said in complaint
    assert bool(said) == bool(complaint)


def test_a_framework_that_is_not_there_is_said(state: State, tmp_path: Path) -> None:
    """Without its environment the workload names the verb that builds it."""
    with tenant(state, tmp_path, "hold 1Gi") as program:
        code, complaint = program.end()

    assert 2 == code
    assert "torch-2.15 is not built; build it with: make frameworks ONLY=torch-2.15" in complaint
