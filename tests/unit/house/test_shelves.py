"""What is looked after beside the fence can be taken away: a folder, and its name in the list."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.program import CONCERNS
from tests.support.sources import ROOT

NEEDED = ("agent", "gpufence", "kube", "service", "tests/support", "tests/unit/agent")
CORE = ("loop", "judge/test_brakes.py", "metrics", "snapshot", "test_settings.py", "test_kill.py")
"""Tests of the core that run in seconds and meet every part to which something could hang."""

START = """
from agent.program import SETTINGS, AgentProgram, NoCluster
from agent.settings import read_agent_settings
made = AgentProgram(read_agent_settings({"GPUFENCE_NODE": "n1"}, SETTINGS), NoCluster())
made.start()
for page in made.pages.values():
    page()
made.stop()
"""


@pytest.fixture(params=CONCERNS, ids=lambda concern: concern.name)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of the tree without one concern."""
    for name in NEEDED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "tests/__init__.py", "tests/unit/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    concern = request.param
    shutil.rmtree(tmp_path / "agent" / "concerns" / concern.name)
    shutil.rmtree(tmp_path / "tests" / "unit" / "agent" / "concerns")
    program = tmp_path / "agent" / "program.py"
    text = program.read_text(encoding="utf-8")
    text = re.sub(rf"^from agent\.concerns\.{concern.name} .*\n", "", text, flags=re.MULTILINE)
    row = "CONCERNS: Final[tuple[type[Concern], ...]] = "
    others = [each.__name__ for each in CONCERNS if each is not concern]
    text, found = re.subn(
        rf"^{re.escape(row)}.*$", f"{row}({', '.join(others)},)", text, flags=re.MULTILINE
    )
    program.write_text(text, encoding="utf-8")

    assert 1 == found
    return tmp_path


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_agent_does_without_it(tree: Path) -> None:
    """What is left type-checks, starts, shows its pages, and passes the core's tests."""
    typed = run(tree, "-m", "mypy", "agent")
    started = run(tree, "-c", START)
    tests = [f"tests/unit/agent/{name}" for name in CORE]
    tested = run(tree, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", *tests)

    assert 0 == typed.returncode, typed.stdout
    assert (0, "") == (started.returncode, started.stderr)
    assert 0 == tested.returncode, tested.stdout
