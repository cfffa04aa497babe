"""A workload that becomes a program of a framework, and how the framework's environment is made."""

import ctypes
import io
import os
import signal
import subprocess
import venv
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cuda.build import library_folder
from simulator.nvml.build import library_path
from simulator.nvml.state import State
from simulator.progress import Progress
from simulator.wheels import install, launch
from simulator.wheels.catalog import WheelSet, find_wheels
from simulator.wheels.install import folder_of, packages_of
from simulator.wheels.stand_ins import stand_ins
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


def lend_libraries(cache: Path) -> Path:
    """Have a cache hold the libraries that are compiled already."""
    cache.mkdir(parents=True)
    for folder in (library_folder(), library_path().parent):
        (cache / folder.name).symlink_to(folder)
    return cache


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the newest PyTorch seems to be installed."""
    root = tmp_path_factory.mktemp("cache")
    wheels = find_wheels("torch")
    folder = folder_of(wheels, lend_libraries(root / "gpufence"))
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


USER = (
    "int cusmallCreate(void); int cusmall_twice(void); int start(void) { return cusmallCreate(); }"
)
VERSIONED = """
int cublasCreate_v2(void);
int begin(void) { return cublasCreate_v2(); }
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return lend_libraries(tmp_path / "cache")


def installed(wheels: WheelSet, built: Path) -> Path:
    """Make what a finished build leaves, as far as starting a program needs it."""
    folder = folder_of(wheels, built)
    packages = folder / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (folder / ".built").write_text("".join(f"{one}\n" for one in wheels.requirements))
    return packages


def compiled(source: str, target: Path, *arguments: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    source_first = ["-x", "c", "-", "-x", "none"]
    command = ["cc", "-shared", "-fPIC", "-o", str(target), *source_first, *arguments]
    subprocess.run(command, input=source, text=True, check=True)
    return target


def test_a_stand_in_has_what_the_framework_imports(built: Path) -> None:
    """
    A library of the wanted name has the functions that the framework lacks, and they do nothing.
    """
    packages = installed(find_wheels("cupy"), built)
    user = compiled(USER, packages / "small" / "user.so")
    folder = stand_ins(["libcusmall.so.1"], packages, built)
    library = ctypes.CDLL(str(folder / "libcusmall.so.1"), ctypes.RTLD_GLOBAL)

    assert 0 == library.cusmallCreate()
    assert 0 == ctypes.CDLL(str(user)).start()


def test_a_stand_in_has_the_versions_that_are_asked_for(built: Path) -> None:
    """Symbols that the framework wants in a version have it."""
    packages = installed(find_wheels("onnxruntime"), built)
    script = built / "versions"
    script.write_text("libcublas.so.13 { global: *; };")
    theirs = compiled(
        "int cublasCreate_v2(void) { return 1; }",
        built / "theirs" / "libcublas.so.13",
        f"-Wl,--version-script={script},-soname,libcublas.so.13",
    )
    user = compiled(VERSIONED, packages / "user.so", str(theirs))
    folder = stand_ins(["libcublas.so.13"], packages, built)
    ctypes.CDLL(str(folder / "libcublas.so.13"), ctypes.RTLD_GLOBAL)

    assert 0 == ctypes.CDLL(str(user)).begin()


def test_nvidias_own_libraries_are_no_framework(built: Path) -> None:
    """What NVIDIA's libraries lack is not looked at."""
    packages = installed(find_wheels("cupy"), built)
    compiled(USER, packages / "nvidia" / "small" / "lib" / "user.so")
    folder = stand_ins(["libcusmall.so.1"], packages, built)

    assert not hasattr(ctypes.CDLL(str(folder / "libcusmall.so.1")), "cusmallCreate")


def test_a_program_finds_our_libraries_first(built: Path, tmp_path: Path) -> None:
    """
    Driver and runtime of ours stand before the libraries of the wheel, and the user's own after.
    """
    wheels = find_wheels("torch-2.10")
    theirs = installed(wheels, built) / "nvidia" / "cublas" / "lib"
    theirs.mkdir(parents=True)
    own = {"LD_LIBRARY_PATH": "/mine", "A": "b"}
    told = launch.variables(wheels, tmp_path / "cards", own, cache_folder=built)
    paths = told["LD_LIBRARY_PATH"].split(":")

    assert (Path(paths[0]) / "libcuda.so.1").exists()
    assert [str(theirs), "/mine"] == paths[2:]
    assert told["LD_PRELOAD"].endswith("/libcudart.so.12")
    assert "b" == told["A"]


def test_stand_ins_come_after_the_wheels_own(built: Path, tmp_path: Path) -> None:
    """A framework with stand-ins finds them behind everything that it brought along."""
    wheels = replace(find_wheels("cupy"), stand_ins=("libcusmall.so.1",))
    compiled(USER, installed(wheels, built) / "user.so")
    told = launch.variables(wheels, tmp_path / "cards", {}, cache_folder=built)

    assert (Path(told["LD_LIBRARY_PATH"].split(":")[-1]) / "libcusmall.so.1").exists()


@pytest.mark.needs("mount namespaces")
def test_jax_finds_a_device_file(built: Path, tmp_path: Path) -> None:
    """
    JAX is started where there is a device file; nobody else sees it, and nothing is left of it.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    jax = find_wheels("jax")
    installed(jax, built)
    python = folder_of(jax, built) / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nls /dev/nvidiactl; echo hello > /dev/null\n")
    python.chmod(0o755)
    command = launch.command(jax, (), cache_folder=built)
    variables = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert (0, "/dev/nvidiactl\n", "") == (done.returncode, done.stdout, done.stderr)
    assert not launch.DEVICE_FILE.exists()
    assert [] == list(temporary.iterdir())


def test_others_are_started_as_they_are(built: Path) -> None:
    """A framework that looks for the driver alone gets nothing around it."""
    wheels = find_wheels("torch")
    installed(wheels, built)
    python = str(folder_of(wheels, built) / "bin" / "python")

    assert [python, "-c", "1"] == launch.command(wheels, ("-c", "1"), cache_folder=built)


def tiny_wheel(folder: Path) -> str:
    """Make a wheel of one module, and return how pip is asked for it."""
    path = folder / "tiny-1.0-py3-none-any.whl"
    about = "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", "ANSWER = 42\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    return f"tiny @ {path.as_uri()}"


@pytest.mark.nightly
def test_an_environment_is_built_once(built: Path, tmp_path: Path) -> None:
    """A build says what it fetches and how much, installs it apart from all else, and marks it."""
    said = io.StringIO()
    wheels = WheelSet("tiny-1", "tiny", (tiny_wheel(tmp_path),), 13, 1)
    install.build([wheels], Progress(said), built)
    python = install.python_of(wheels, built)
    answer = subprocess.check_output([python, "-c", "import tiny; print(tiny.ANSWER)"], text=True)
    first = said.getvalue()
    install.build([wheels], Progress(said), built)

    assert "42\n" == answer
    assert "tiny-1; 1 MiB" in first
    assert first == said.getvalue()


@pytest.mark.nightly
def test_a_failed_build_says_why_and_is_taken_up_again(built: Path, tmp_path: Path) -> None:
    """
    What pip cannot install leaves no mark, and its words are passed on; a next build goes on there.
    """
    wrong = WheelSet("tiny-1", "tiny", (f"tiny @ {(tmp_path / 'none.whl').as_uri()}",), 13, 1)
    with pytest.raises(install.WheelsError, match=r"tiny-1 could not be installed: .*ERROR"):
        install.build([wrong], Progress(), built)
    right = replace(wrong, requirements=(tiny_wheel(tmp_path),))
    install.build([right], Progress(), built)

    assert (False, True) == (install.is_built(wrong, built), install.is_built(right, built))
