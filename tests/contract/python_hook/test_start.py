"""An interpreter starts with the hook as without, be it on its path or in a site folder."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from gpufence import names
from tests.contract.python_hook.standins import tensorflow, torch
from tests.contract.python_hook.worlds import HOOK, SHARES, interpreters, said, start, write
from webhook.rewrite.python_hook import MOUNT_PATH, SITE_LINE

FOUND = interpreters()
FINDERS = "import sys; print([type(each).__name__ for each in sys.meta_path].count('Finder'))"


@pytest.mark.parametrize("python", FOUND.values(), ids=FOUND)
def test_a_start_is_silent(python: str) -> None:
    """No interpreter says a word, Python 2.7 included, though every warning is an error."""
    assert "" == said(start("-W", "error", "-bb", "-c", "", python=python))


@pytest.mark.parametrize(
    ("flags", "count"),
    [("-s", 1), ("-P", 1), ("-O", 1), ("-Xdev", 1), ("-E", 0), ("-I", 0), ("-S", 0)],
)
def test_flags_that_hide_the_hook_leave_a_plain_python(flags: str, count: int) -> None:
    """The hook runs unless the interpreter is told to ignore PYTHONPATH or site."""
    assert str(count) == said(start(flags, "-c", FINDERS))


def test_a_start_imports_nothing(tmp_path: Path) -> None:
    """The hook loads no framework and no module that a bare start would not load."""
    world = write(tmp_path, {**torch(), **tensorflow()})
    code = "import sys; print(sorted(sys.modules))"
    without = said(start("-c", code, hook=False))
    told = said(start("-c", code, path=(world,)))

    assert without == told.replace(" 'sitecustomize',", "")


def test_a_script_and_a_module_have_the_hook(tmp_path: Path) -> None:
    """The hook runs for a script and for a module alike."""
    world = write(tmp_path, {"program.py": FINDERS})
    script = said(start(str(world / "program.py")))
    module = said(start("-m", "program", path=(world,)))

    assert ("1", "1") == (script, module)


CHILDREN = """
import multiprocessing, subprocess, sys
def work():
    import torch
    torch.cuda._lazy_init()
    print(torch._C.calls[0], flush=True)
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(method).Process(target=work)
        child.start()
        child.join()
    subprocess.run([sys.executable, "-c", "import program; program.work()"], check=True)
"""


def test_children_of_every_kind_are_capped(tmp_path: Path) -> None:
    """Forked, spawned and started processes all have the hook."""
    world = write(tmp_path, {**torch(), "program.py": CHILDREN})
    told = said(start(str(world / "program.py"), path=(world,)))

    assert ["(0.14, 0)"] * 4 == told.splitlines()


def test_a_queue_survives_a_fork(tmp_path: Path) -> None:
    """A process that imported torch, and not yet started CUDA, hands the cap on to its children."""
    program = CHILDREN.replace("import multi", "import torch, multi").replace(
        '("fork", "spawn", "forkserver")', '("fork",)'
    )
    world = write(tmp_path, {**torch(), "program.py": program})
    told = said(start(str(world / "program.py"), path=(world,)))

    assert ["(0.14, 0)"] * 2 == told.splitlines()


def test_modules_keep_their_loaders(tmp_path: Path) -> None:
    """A changed module has the loader, the spec and the source it would have had."""
    world = write(tmp_path, torch())
    code = (
        "import torch.cuda as t, inspect, importlib.machinery as m\n"
        "print(type(t.__loader__) is m.SourceFileLoader, t.__spec__.loader is t.__loader__)\n"
        "print('_lazy_call' in inspect.getsource(t))\n"
        "import importlib; print(len(importlib.reload(t)._queued_calls))"
    )

    assert "True True\nTrue\n1" == said(start("-c", code, path=(world,)))


ELSE = """
import importlib.util, sys
class Other:
    busy = False
    def find_spec(self, name, path=None, target=None):
        if name != "torch.cuda" or self.busy:
            return None
        self.busy = True
        spec = importlib.util.find_spec(name)
        self.busy = False
        return spec
class Legacy:
    def find_module(self, name, path=None):
        return None
sys.meta_path.insert({place}, Other())
sys.meta_path.insert(0, Legacy())
import torch
torch.cuda._lazy_init()
print(torch._C.calls[0])
"""


@pytest.mark.parametrize("place", [0, 1])
def test_other_finders_are_respected(tmp_path: Path, place: int) -> None:
    """
    Before or behind a finder that asks all finders in its turn, as tracing libraries do, we work.
    """
    world = write(tmp_path, torch())
    told = said(start("-c", ELSE.replace("{place}", str(place)), path=(world,)))

    assert "(0.14, 0)" == told


def test_a_finder_that_fails_fails_as_ever(tmp_path: Path) -> None:
    """What another finder raises for a framework reaches the program."""
    code = (
        "import sys\n"
        "class Angry:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch.cuda':\n"
        "            raise RuntimeError('angry')\n"
        "sys.meta_path.insert(1, Angry())\n"
        "import torch"
    )
    result = start("-c", code, path=(write(tmp_path, torch()),))

    assert "RuntimeError: angry" == result.stderr.splitlines()[-1]


def test_frameworks_imported_before_are_capped(tmp_path: Path) -> None:
    """A framework that something imported before us is changed where it stands."""
    world = write(tmp_path / "world", torch())
    kept = tmp_path / "kept"
    shutil.copytree(HOOK, kept)
    code = (
        "import sys, torch\n"
        f"sys.path.insert(0, {str(kept)!r}); sys.modules.pop('sitecustomize', None)\n"
        "import sitecustomize\n"
        "torch.cuda._lazy_init(); print(torch._C.calls[0])"
    )

    assert "(0.14, 0)" == said(start("-c", code, path=(world,), hook=False))


def test_a_missing_framework_is_missing_as_ever() -> None:
    """Importing what is not installed raises the usual error."""
    result = start("-c", "import torch.cuda")

    assert "ModuleNotFoundError: No module named 'torch'" == result.stderr.splitlines()[-1]


@pytest.mark.parametrize("error", ["SystemExit(3)", "KeyboardInterrupt", "MemoryError"])
def test_whatever_happens_within_the_hook_stays_there(error: str) -> None:
    """Not even an exit, raised by something the hook asks as it starts, reaches the program."""
    code = (
        "import sys\n"
        "class Trap:\n"
        "    def find_spec(self, *args):\n"
        "        return None\n"
        "    def __getattr__(self, name):\n"
        f"        raise {error} if name.startswith('gpufence') else AttributeError\n"
        "sys.meta_path.insert(0, Trap())\n"
        f"sys.path.insert(0, {str(HOOK)!r}); sys.modules.pop('sitecustomize', None)\n"
        "import sitecustomize; print('alive')"
    )

    assert "alive" == said(start("-c", code, hook=False, environ=SHARES))


def test_a_path_that_cannot_be_searched_stops_nobody() -> None:
    """
    Trouble within the hook, here a path that is not made of folders, leaves the program alone.
    """
    code = (
        "import sys\n"
        f"sys.path[:] = [{str(HOOK)!r}, 3, None, b'x']\n"
        "import sitecustomize; print('alive')"
    )

    assert "alive" == said(start("-c", code, hook=False, environ=SHARES))


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
