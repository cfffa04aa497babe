"""Without a shelf each program type-checks, starts and passes."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.tree import PACKAGES, TOOLS
from tools import ROOT

TESTS = ("__init__.py", "support", "data", "golden", "http", "unit")

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
WEBHOOK = """
from kube import ClientSettings
from webhook.program import CHECKS, live_cluster
from webhook.server import hooks_of
from webhook.settings import WebhookSettings
chosen = WebhookSettings()
policy = chosen.pods.policy()
checks = [each(policy) for each in CHECKS]
more = [each.follows for each in checks]
made = live_cluster(ClientSettings(server="http://127.0.0.1:9"), policy, chosen.server, (), more)
made.pages = {}
hooks_of(made, policy, checks)
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
        "webhook/checks",
        WEBHOOK,
        ("tests/golden/webhook/test_golden.py", "tests/unit/webhook/test_rewrite.py"),
    ),
    Program(
        "controller/keepers",
        CONTROLLER,
        ("tests/golden/controller/test_releases.py", "tests/unit/controller/test_decide.py"),
    ),
    Program(
        "agent/concerns",
        AGENT,
        tuple(
            f"tests/unit/agent/{each}"
            for each in (
                *("nvml/test_sampler.py", "procfs/test_parse.py", "cluster/test_filter.py"),
                *("test_attribute.py", "test_settings.py", "test_driver_limits.py"),
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
    """Copy the programs, as they are compiled, but for one shelf and its program's lines of it."""
    program, shelf = request.param
    copied(tmp_path, *PACKAGES, TOOLS, "pyproject.toml")
    shutil.rmtree(tmp_path / program.shelves / shelf)
    page = tmp_path / program.name / "program.py"
    package = f"{program.shelves}/{shelf}".replace("/", ".")
    page.write_text(without_row(page.read_text(encoding="utf-8"), package), encoding="utf-8")
    return program, tmp_path


def copied(folder: Path, *parts: str) -> None:
    for part in parts:
        target = folder / part
        target.parent.mkdir(exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target)
        else:
            shutil.copy(ROOT / part, target)


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
    del lines[statement.lineno - 1]
    left, rows = re.subn(rf"\n    {alias.name},(?=\n)|(?<=\(){alias.name},", "", "".join(lines))

    assert 1 == rows
    return left


@pytest.mark.nightly
def test_the_rest_of_a_program_type_checks(without: tuple[Program, Path]) -> None:
    """Nothing else knows a shelf by name."""
    program, copy = without

    assert "Success" in told(copy, "mypy", "--no-incremental", "-p", program.name)


def test_the_rest_of_a_program_starts(without: tuple[Program, Path]) -> None:
    """It shows its pages, and ends when it is told to."""
    program, copy = without
    (copy / "started.py").write_text(f"{program.made}{START}", encoding="utf-8")

    assert "" == told(copy, "started")


@pytest.mark.nightly
def test_the_rest_of_a_program_passes_its_tests(without: tuple[Program, Path]) -> None:
    """Those of its core, none of which needs a shelf."""
    program, copy = without
    copied(copy, *(f"tests/{each}" for each in TESTS))
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


VERBS = ("dashboard", "idle", "recommend", "verify", "why")
FOLDERS = ("kubectl_gpufence/gpushare", *(f"kubectl_gpufence/verbs/{verb}" for verb in VERBS))
CORE_TESTS = (
    "tests/http/plugin/test_asking.py",
    "tests/http/plugin/test_doctor.py",
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tree but for the folders and their rows in the list of verbs."""
    copy = tmp_path_factory.mktemp("core")
    copied(copy, *PACKAGES, "pyproject.toml")
    for shelf in FOLDERS:
        place = copy / shelf
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    page = copy / "kubectl_gpufence" / "verbs" / "__init__.py"
    rows = "|".join(rf'"{verb}"|.*"{verb}\.' for verb in VERBS)
    page.write_text(re.sub(rf"^    Verb\((?:{rows}).*\n", "", page.read_text(), flags=re.MULTILINE))
    return copy


@pytest.mark.nightly
def test_the_core_type_checks(core: Path) -> None:
    """Nothing in it knows what is gone."""
    assert "Success" in told(core, "mypy", "--no-incremental", "-p", "kubectl_gpufence")


def test_the_core_has_its_own_verbs(core: Path) -> None:
    """What is gone is not offered, and all else is."""
    listed = re.findall(r"^    (\w+) ", told(core, "kubectl_gpufence", "--help"), re.MULTILINE)

    assert ["top", "explain", "doctor", "inspect"] == listed


@pytest.mark.nightly
def test_the_core_passes_its_tests(core: Path) -> None:
    """Those that read a cluster and lay out what was read."""
    copied(core, "tests")

    assert " passed" in told(core, "pytest", "-q", "-x", "-p", "no:cacheprovider", *CORE_TESTS)
