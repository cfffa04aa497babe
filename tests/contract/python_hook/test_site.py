"""The start-up hook by a line in a site folder, in layouts that images really have."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from gpufence import names
from tests.contract.python_hook.worlds import HOOK
from webhook.rewrite.python_hook import MOUNT_PATH, SITE_LINE

HOOKED = "import sys; print(any(hasattr(f, 'gpufence_passed') for f in sys.meta_path))"
SOURCE = HOOK / names.HOOK_FILE


def run(python: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make an environment as images have in /opt/venv, with the line in its site folder."""
    folder = tmp_path_factory.mktemp("opt") / "venv"
    venv.create(folder, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    assert site.is_dir()
    line = SITE_LINE.replace(MOUNT_PATH, str(SOURCE))
    (site / names.HOOK_SITE_FILE).write_text(line, encoding="utf-8")
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("options", [(), ("-I",), ("-E",), ("-s",), ("-P",), ("-X", "dev")])
def test_the_line_starts_the_hook(python: str, options: tuple[str, ...]) -> None:
    """
    The hook is there in whatever way the interpreter is started, and nothing is complained of.
    """
    result = run(python, *options, "-c", HOOKED)

    assert ("True\n", "", 0) == (result.stdout, result.stderr, result.returncode)


def test_without_site_there_is_no_hook(python: str) -> None:
    """An interpreter that reads no site folder has no hook."""
    assert "False\n" == run(python, "-S", "-c", HOOKED).stdout


def test_the_images_own_path_is_searched(python: str, tmp_path: Path) -> None:
    """A PYTHONPATH stays as it is, and a sitecustomize that it leads to is run."""
    (tmp_path / "own.py").write_text("print('own')", encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text("print('site')", encoding="utf-8")
    result = run(python, "-c", f"import own; {HOOKED}", PYTHONPATH=str(tmp_path))

    assert "site\nown\nTrue\n" == result.stdout


def test_two_site_folders_start_it_once(python: str, tmp_path: Path) -> None:
    """A second line in another site folder adds no second hook."""
    line = SITE_LINE.replace(MOUNT_PATH, str(SOURCE))
    (tmp_path / names.HOOK_SITE_FILE).write_text(line, encoding="utf-8")
    count = "import sys; print(sum(hasattr(f, 'gpufence_passed') for f in sys.meta_path))"
    result = run(python, "-c", f"import site; site.addsitedir({str(tmp_path)!r}); {count}")

    assert "1\n" == result.stdout


def test_a_line_without_its_source_is_harmless(tmp_path: Path) -> None:
    """Where the source is not there, the line does nothing, without a word."""
    line = SITE_LINE.replace(MOUNT_PATH, str(tmp_path / "nowhere.py"))
    (tmp_path / names.HOOK_SITE_FILE).write_text(line, encoding="utf-8")
    result = run(sys.executable, "-c", f"import site; site.addsitedir({str(tmp_path)!r})")

    assert ("", "", 0) == (result.stdout, result.stderr, result.returncode)


def test_the_line_is_one_that_site_runs() -> None:
    """Python runs a line of such a file only if it begins with an import, and only as one line."""
    assert SITE_LINE.startswith("import ")
    assert 1 == SITE_LINE.count("\n")
