"""
What a cluster may do without is a folder and a row: without them the rest of a program type-checks,
starts, and passes the tests of its core.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.sources import PACKAGES, ROOT, TOOLS

LEFT_OUT = shutil.ignore_patterns("__pycache__")
TESTS = ("__init__.py", "support", "data", "http", "unit")

CONTROLLER = """
from controller.program import SETTINGS, ControllerProgram
from gpufence.settings import read_settings
from kube import ClientSettings
made = ControllerProgram(read_settings(SETTINGS, {}), ClientSettings(server="http://127.0.0.1:9"))
"""
AGENT = """
from agent.program import SETTINGS, AgentProgram, NoCluster
from agent.settings import read_agent_settings
made = AgentProgram(read_agent_settings({"GPUFENCE_NODE": "n1"}, SETTINGS), NoCluster())
"""
START = """
made.start()
for page in made.pages.values():
    page()
made.stop()
"""


class Program(NamedTuple):
    """Where a program's shelves are, what makes it, and quick tests of its core."""

    shelves: str
    made: str
    core_tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.shelves.partition("/")[0]


PROGRAMS = (
    Program(
        "controller/keepers",
        CONTROLLER,
        ("tests/unit/controller/cluster", "tests/unit/controller/decide/test_release.py"),
    ),
    Program(
        "agent/concerns",
        AGENT,
        tuple(
            f"tests/unit/agent/{each}"
            for each in (
                *("loop", "judge/test_brakes.py", "metrics", "snapshot"),
                *("test_settings.py", "test_kill.py"),
            )
        ),
    ),
)


def shelves() -> Iterator[tuple[Program, str]]:
    """Yield each shelf: its program and its folder's name."""
    for program in PROGRAMS:
        for folder in sorted((ROOT / program.shelves).iterdir()):
            if (folder / "__init__.py").is_file():
                yield program, folder.name


@pytest.fixture(params=shelves(), ids=lambda shelf: f"{shelf[0].shelves}/{shelf[1]}")
def without(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Program, Path]:
    """Copy the tree but for one shelf, its tests, and the lines of the program that name it."""
    program, shelf = request.param
    for part in (*PACKAGES, TOOLS, *(f"tests/{each}" for each in TESTS), "pyproject.toml"):
        copied(ROOT / part, tmp_path / part)
    shutil.rmtree(tmp_path / program.shelves / shelf)
    for tests in (tmp_path / "tests").glob(f"*/{program.shelves}/{shelf}"):
        shutil.rmtree(tests)
    page = tmp_path / program.name / "program.py"
    package = f"{program.shelves}/{shelf}".replace("/", ".")
    page.write_text(without_row(page.read_text(encoding="utf-8"), package), encoding="utf-8")
    return program, tmp_path


def copied(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT_OUT)
    else:
        shutil.copy(source, target)


def without_row(text: str, package: str) -> str:
    """Return a program without the import of a shelf, and without the row that names it."""
    found = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom) and node.module == package
    ]
    (statement,) = found
    (alias,) = statement.names
    lines = text.splitlines(keepends=True)
    gone = [lines[statement.lineno - 1], f"    {alias.name},\n"]

    assert [1, 1] == [lines.count(line) for line in gone]
    return "".join(line for line in lines if line not in gone)


def test_the_rest_of_a_program_type_checks(without: tuple[Program, Path]) -> None:
    """Nothing else knows a shelf by name."""
    program, copy = without

    assert "Success" in told(copy, "mypy", "--no-incremental", "-p", program.name)


def test_the_rest_of_a_program_starts(without: tuple[Program, Path]) -> None:
    """It shows its pages, and ends when it is told to."""
    program, copy = without
    (copy / "started.py").write_text(f"{program.made}{START}", encoding="utf-8")

    assert "" == told(copy, "started")


def test_the_rest_of_a_program_passes_its_tests(without: tuple[Program, Path]) -> None:
    """Those of its core, none of which needs a shelf."""
    program, copy = without
    command = ("pytest", "-q", "-x", "--noconftest", "-p", "no:cacheprovider")

    assert " passed" in told(copy, *command, *program.core_tests)


def told(folder: Path, *command: str) -> str:
    """Return what a tool says of the copy."""
    result = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == result.returncode, result.stdout + result.stderr
    return result.stdout
