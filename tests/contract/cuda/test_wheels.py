"""
How a framework's environment is built, and its program started: stand-ins for what it links,
variables, a device file.
"""

import ctypes
import io
import os
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.progress import Progress
from simulator.wheels import install, launch
from simulator.wheels.catalog import WheelSet, find_wheels
from simulator.wheels.install import folder_of
from simulator.wheels.stand_ins import stand_ins

USER = (
    "int cusmallCreate(void); int cusmall_twice(void); int start(void) { return cusmallCreate(); }"
)
VERSIONED = """
int cublasCreate_v2(void);
int begin(void) { return cublasCreate_v2(); }
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def installed(wheels: WheelSet, cache: Path) -> Path:
    """Make what a finished build leaves, as far as starting a program needs it."""
    folder = folder_of(wheels, cache)
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


def test_a_stand_in_has_what_the_framework_imports(cache: Path) -> None:
    """
    A library of the wanted name has the functions that the framework lacks, and they do nothing.
    """
    packages = installed(find_wheels("cupy"), cache)
    user = compiled(USER, packages / "small" / "user.so")
    folder = stand_ins(["libcusmall.so.1"], packages, cache)
    library = ctypes.CDLL(str(folder / "libcusmall.so.1"), ctypes.RTLD_GLOBAL)

    assert 0 == library.cusmallCreate()
    assert 0 == ctypes.CDLL(str(user)).start()


def test_a_stand_in_has_the_versions_that_are_asked_for(cache: Path) -> None:
    """Symbols that the framework wants in a version have it."""
    packages = installed(find_wheels("onnxruntime"), cache)
    script = cache / "versions"
    script.write_text("libcublas.so.13 { global: *; };")
    theirs = compiled(
        "int cublasCreate_v2(void) { return 1; }",
        cache / "theirs" / "libcublas.so.13",
        f"-Wl,--version-script={script},-soname,libcublas.so.13",
    )
    user = compiled(VERSIONED, packages / "user.so", str(theirs))
    folder = stand_ins(["libcublas.so.13"], packages, cache)
    ctypes.CDLL(str(folder / "libcublas.so.13"), ctypes.RTLD_GLOBAL)

    assert 0 == ctypes.CDLL(str(user)).begin()


def test_nvidias_own_libraries_are_no_framework(cache: Path) -> None:
    """What NVIDIA's libraries lack is not looked at."""
    packages = installed(find_wheels("cupy"), cache)
    compiled(USER, packages / "nvidia" / "small" / "lib" / "user.so")
    folder = stand_ins(["libcusmall.so.1"], packages, cache)

    assert not hasattr(ctypes.CDLL(str(folder / "libcusmall.so.1")), "cusmallCreate")


def test_a_program_finds_our_libraries_first(cache: Path, tmp_path: Path) -> None:
    """
    Driver and runtime of ours stand before the libraries of the wheel, and the user's own after.
    """
    wheels = find_wheels("torch-2.10")
    theirs = installed(wheels, cache) / "nvidia" / "cublas" / "lib"
    theirs.mkdir(parents=True)
    own = {"LD_LIBRARY_PATH": "/mine", "A": "b"}
    told = launch.variables(wheels, tmp_path / "cards", own, cache_folder=cache)
    paths = told["LD_LIBRARY_PATH"].split(":")

    assert (Path(paths[0]) / "libcuda.so.1").exists()
    assert [str(theirs), "/mine"] == paths[2:]
    assert told["LD_PRELOAD"].endswith("/libcudart.so.12")
    assert "b" == told["A"]


def test_stand_ins_come_after_the_wheels_own(cache: Path, tmp_path: Path) -> None:
    """A framework with stand-ins finds them behind everything that it brought along."""
    wheels = replace(find_wheels("cupy"), stand_ins=("libcusmall.so.1",))
    compiled(USER, installed(wheels, cache) / "user.so")
    told = launch.variables(wheels, tmp_path / "cards", {}, cache_folder=cache)

    assert (Path(told["LD_LIBRARY_PATH"].split(":")[-1]) / "libcusmall.so.1").exists()


@pytest.mark.needs("mount namespaces")
def test_jax_finds_a_device_file(cache: Path, tmp_path: Path) -> None:
    """
    JAX is started where there is a device file; nobody else sees it, and nothing is left of it.
    """
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    jax = find_wheels("jax")
    installed(jax, cache)
    python = folder_of(jax, cache) / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nls /dev/nvidiactl; echo hello > /dev/null\n")
    python.chmod(0o755)
    command = launch.command(jax, (), cache_folder=cache)
    variables = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    assert (0, "/dev/nvidiactl\n", "") == (done.returncode, done.stdout, done.stderr)
    assert not launch.DEVICE_FILE.exists()
    assert [] == list(temporary.iterdir())


def test_others_are_started_as_they_are(cache: Path) -> None:
    """A framework that looks for the driver alone gets nothing around it."""
    wheels = find_wheels("torch")
    installed(wheels, cache)
    python = str(folder_of(wheels, cache) / "bin" / "python")

    assert [python, "-c", "1"] == launch.command(wheels, ("-c", "1"), cache_folder=cache)


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
def test_an_environment_is_built_once(cache: Path, tmp_path: Path) -> None:
    """A build says what it fetches and how much, installs it apart from all else, and marks it."""
    said = io.StringIO()
    wheels = WheelSet("tiny-1", "tiny", (tiny_wheel(tmp_path),), 13, 1)
    install.build([wheels], Progress(said), cache)
    python = install.python_of(wheels, cache)
    answer = subprocess.check_output([python, "-c", "import tiny; print(tiny.ANSWER)"], text=True)
    first = said.getvalue()
    install.build([wheels], Progress(said), cache)

    assert "42\n" == answer
    assert "tiny-1; 1 MiB" in first
    assert first == said.getvalue()


@pytest.mark.nightly
def test_a_failed_build_says_why_and_is_taken_up_again(cache: Path, tmp_path: Path) -> None:
    """
    What pip cannot install leaves no mark, and its words are passed on; a next build goes on there.
    """
    wrong = WheelSet("tiny-1", "tiny", (f"tiny @ {(tmp_path / 'none.whl').as_uri()}",), 13, 1)
    with pytest.raises(install.WheelsError, match=r"tiny-1 could not be installed: .*ERROR"):
        install.build([wrong], Progress(), cache)
    right = replace(wrong, requirements=(tiny_wheel(tmp_path),))
    install.build([right], Progress(), cache)

    assert (False, True) == (install.is_built(wrong, cache), install.is_built(right, cache))
