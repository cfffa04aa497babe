"""The wheel is the product: everything in it imports without the sources beside it."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.tree import PACKAGES
from tools import ROOT

# The build backend looks for its own program beside the interpreter through PATH.
_ENVIRONMENT = {"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"}


def _run(*command: str | Path, cwd: Path) -> str:
    result = subprocess.run(
        [str(item) for item in command],
        cwd=cwd,
        env=_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == result.returncode, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with our wheel and the locked dependencies only."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT, cwd=folder)
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    site = next((folder / "env").glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    wheel = next(folder.glob("gpufence-*.whl"))
    into = (*pip[:3], "--python", folder / "env", *pip[3:])
    _run(*into, "install", "--no-deps", wheel, cwd=folder)
    return folder / "env" / "bin" / "python"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_imports_from_the_wheel(python: Path, package: str) -> None:
    """Each top-level package imports from the installed wheel, not from the checkout."""
    script = f"import {package}; print({package}.__file__)"
    where = _run(python, "-I", "-c", script, cwd=python.parent)

    assert str(python.parents[1]) in where


def test_the_wheel_carries_the_dashboards_page(python: Path) -> None:
    """What is no Python is there as well, and read from where it is."""
    script = (
        "from kubectl_gpufence.verbs.dashboard.server import read_page; print(read_page().policy)"
    )

    assert "script-src 'sha256-" in _run(python, "-I", "-c", script, cwd=python.parent)


@pytest.mark.parametrize("program", ["kubectl-gpufence", "kubectl-inspect-gpushare"])
def test_the_installed_wheel_is_the_plugin(python: Path, program: str) -> None:
    """Both plugins can be called by their names, once somebody has installed the wheel."""
    called = program.replace("-", " ")

    assert f"usage: {called}" in _run(python.parent / program, "--help", cwd=python.parent)


def test_the_wheel_carries_the_simulators_sources(python: Path) -> None:
    """The C sources of the simulated library are in the wheel, since it is built where it runs."""
    site = next(python.parents[1].glob("lib/python*/site-packages"))

    assert list((site / "simulator" / "nvml").rglob("*.c"))
