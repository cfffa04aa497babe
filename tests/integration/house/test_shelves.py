"""
What a cluster may do without is a folder and a row: without them the rest of a program type-checks,
starts, and passes the tests of its core.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.api_server import ApiServer
from tests.support.desk import kubeconfig_of
from tests.support.processes import LOOPBACK, ServingProcess
from tests.support.sources import PACKAGES, ROOT, TOOLS

LEFT_OUT = shutil.ignore_patterns("__pycache__")
TESTS = ("conftest.py", "__init__.py", "support", "http", "unit")


class Program(NamedTuple):
    """A program with shelves: the package that holds them, how it is started, tests of its core."""

    name: str
    shelves: str
    environment: Mapping[str, str]
    core_tests: tuple[str, ...]


PROGRAMS = {
    "controller": Program(
        "controller",
        "controller/keepers",
        {"GPUFENCE_STATUS_LISTEN": f"{LOOPBACK}:0"},
        ("tests/unit/controller", "tests/http/controller/test_agents.py"),
    ),
}


def shelves() -> Iterator[tuple[str, str]]:
    """Yield each shelf by its program and its folder's name."""
    for program in PROGRAMS.values():
        for folder in sorted((ROOT / program.shelves).iterdir()):
            if (folder / "__init__.py").is_file():
                yield program.name, folder.name


@pytest.fixture(params=shelves(), ids="/".join)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Program, Path]:
    """Copy the tree but for one shelf, its tests, and the lines of the program that name it."""
    name, shelf = request.param
    program = PROGRAMS[name]
    for package in (*PACKAGES, TOOLS):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=LEFT_OUT)
    for part in TESTS:
        source, target = ROOT / "tests" / part, tmp_path / "tests" / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=LEFT_OUT)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.rmtree(tmp_path / program.shelves / shelf)
    for tests in (tmp_path / "tests").glob(f"*/{program.shelves}/{shelf}"):
        shutil.rmtree(tests)
    page = tmp_path / name / "program.py"
    package = f"{program.shelves}/{shelf}".replace("/", ".")
    page.write_text(without_row(page.read_text(encoding="utf-8"), package), encoding="utf-8")
    return program, tmp_path


def without_row(text: str, package: str) -> str:
    """Return a program without the import of a shelf, and without the row that names it."""
    imports = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom) and node.module == package
    ]
    gone = {number for node in imports for number in range(node.lineno, node.end_lineno or 0)}
    gone |= {node.end_lineno or 0 for node in imports}
    rows = {f"    {alias.name}," for node in imports for alias in node.names}
    lines = text.splitlines(keepends=True)
    left = [
        line
        for number, line in enumerate(lines, start=1)
        if number not in gone and line.rstrip("\n") not in rows
    ]

    assert len(left) == len(lines) - len(gone) - len(rows)
    return "".join(left)


def test_the_rest_of_a_program_type_checks(without: tuple[Program, Path]) -> None:
    """Nothing else knows a shelf by name."""
    program, copy = without

    assert "Success" in told(copy, "mypy", "--no-incremental", "-p", program.name)


def test_the_rest_of_a_program_starts(without: tuple[Program, Path], tmp_path: Path) -> None:
    """It serves, and ends when it is told to."""
    program, copy = without
    config = tmp_path / "kubeconfig"
    with ApiServer() as server:
        config.write_text(yaml.safe_dump(kubeconfig_of(server.url)))
        settings = {"KUBECONFIG": str(config), **program.environment}
        with ServingProcess((program.name,), settings, folder=copy) as running:
            serving = running.serving

    assert ("serving", 0) == (serving["message"], running.process.returncode)


def test_the_rest_of_a_program_passes_its_tests(without: tuple[Program, Path]) -> None:
    """Those of its core, none of which needs a shelf."""
    program, copy = without
    tests = [each for each in program.core_tests if (copy / each).exists()]

    assert " passed" in told(copy, "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)


def told(folder: Path, *command: str) -> str:
    """Return what a tool says of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == result.returncode, result.stdout + result.stderr
    return result.stdout
