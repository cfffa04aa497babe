"""
What somebody may want a plugin without is a folder and its rows: what is left type-checks, lists
its other verbs, and passes the tests of its core. Import contracts say the same of each alone.
"""

import re
import shutil
from pathlib import Path

import pytest

from tests.integration.house.test_shelves import LEFT_OUT, told
from tests.support.sources import PACKAGES, ROOT

VERBS = ("dashboard", "idle", "recommend")
FOLDERS = (*(f"kubectl_gpufence/verbs/{verb}" for verb in VERBS), "kubectl_gpufence/gpushare")
CORE_TESTS = (
    *("tests/http/plugin/test_asking.py", "tests/http/plugin/test_live.py"),
    *("tests/unit/plugin/test_agents.py", "tests/unit/plugin/test_view.py"),
)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tree but for the folders and their rows in the list of verbs."""
    copy = tmp_path_factory.mktemp("core")
    for folder in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for folder in FOLDERS:
        shutil.rmtree(copy / folder)
    page = copy / "kubectl_gpufence" / "verbs" / "__init__.py"
    rows = "|".join(rf'"{verb}"|.*"{verb}\.' for verb in VERBS)
    page.write_text(re.sub(rf"^    Verb\((?:{rows}).*\n", "", page.read_text(), flags=re.MULTILINE))
    return copy


def test_the_core_type_checks(core: Path) -> None:
    """Nothing in it knows what is gone."""
    assert "Success" in told(core, "mypy", "--no-incremental", "-p", "kubectl_gpufence")


def test_the_core_has_its_own_verbs(core: Path) -> None:
    """What is gone is not offered, and all else is."""
    listed = re.findall(r"^    (\w+) ", told(core, "kubectl_gpufence", "--help"), re.MULTILINE)

    assert ["top", "explain", "doctor", "inspect"] == listed


def test_the_core_passes_its_tests(core: Path) -> None:
    """Those that read a cluster and lay out what was read."""
    assert " passed" in told(core, "pytest", "-q", "-x", "-p", "no:cacheprovider", *CORE_TESTS)
