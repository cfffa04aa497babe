"""The sitecustomize that ours hides runs as if ours were not there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.python_hook.standins import torch
from tests.contract.python_hook.worlds import HOOK, SHARES, interpreters, said, start, write

FOUND = interpreters()
MARKING = "import sys\nsys.marks = getattr(sys, 'marks', []) + ['{mark}']\n"
SHOW = "import sys; print(sys.marks)"


def marking(mark: str, more: str = "") -> dict[str, str]:
    return {"sitecustomize.py": MARKING.replace("{mark}", mark) + more}


@pytest.mark.parametrize("python", FOUND.values(), ids=FOUND)
def test_the_hidden_one_runs_once(tmp_path: Path, python: str) -> None:
    """
    In every interpreter, Python 2.7 too, the next sitecustomize on the path runs, and only that.
    """
    first = write(tmp_path / "first", marking("first"))
    second = write(tmp_path / "second", marking("second"))
    told = said(start("-c", SHOW, path=(first, HOOK, second), python=python))

    assert "['first']" == told


@pytest.mark.parametrize("python", FOUND.values(), ids=FOUND)
def test_importing_it_later_gives_the_hidden_one(tmp_path: Path, python: str) -> None:
    """
    A program that imports sitecustomize gets the image's own, with its names, be it a package and
    behind what is no folder.
    """
    world = write(tmp_path / "own", {"sitecustomize/__init__.py": "COLOUR = 'green'\n"})
    code = "import sitecustomize as s, os; print(s.COLOUR, os.path.dirname(s.__file__))"
    told = said(start("-c", code, path=(tmp_path / "none", world), python=python))

    assert "green" in told
    assert str(world / "sitecustomize") in told


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('broken')",
        "raise SystemExit(3)",
        "raise SystemExit('no licence')",
        "import there_is_no_such_module",
        "def f(:",
        "print('hello')",
        "import warnings; warnings.warn('old')",
        "raise ImportError('by name', name='sitecustomize')",
    ],
)
def test_what_it_raises_is_as_without_us(tmp_path: Path, text: str) -> None:
    """Exit code, output and complaint are those of an interpreter without the hook."""
    world = write(tmp_path, {"sitecustomize.py": f"{text}\n"})
    code = "import sys; print('sitecustomize' in sys.modules)"
    with_us = start("-c", code, path=(world,))
    without = start("-c", code, path=(world,), hook=False)

    assert (without.returncode, without.stdout) == (with_us.returncode, with_us.stdout)
    assert without.stderr.splitlines()[-2:] == with_us.stderr.splitlines()[-2:]


@pytest.mark.parametrize("text", ["raise ValueError", "import torch"])
def test_whatever_it_does_the_cap_holds(tmp_path: Path, text: str) -> None:
    """Also where the image's own sitecustomize fails, or imports torch itself."""
    world = write(tmp_path, {**torch(), "sitecustomize.py": f"{text}\n"})
    code = "import torch; torch.cuda._lazy_init(); print(torch._C.calls[0])"

    assert "(0.14, 0)\n" == start("-c", code, path=(world,)).stdout


OTEL = """
import os
here = os.path.dirname(os.path.abspath(__file__))
parts = os.environ["PYTHONPATH"].split(os.pathsep)
os.environ["PYTHONPATH"] = os.pathsep.join(part for part in parts if part != here)
"""
TRACER = """
import os
here = os.path.dirname(os.path.abspath(__file__))
place = sys.path.index(here)
del sys.path[place]
kept = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = kept
finally:
    sys.path.insert(place, here)
"""
STUBBORN = """
del sys.modules["sitecustomize"]
import sitecustomize
"""


@pytest.mark.parametrize(
    ("more", "marks"),
    [(OTEL, ["agent"]), (TRACER, ["agent", "image"]), (STUBBORN, ["agent", "image"])],
    ids=["opentelemetry", "tracer", "stubborn"],
)
def test_agents_that_chain_on_are_not_run_twice(
    tmp_path: Path, more: str, marks: list[str]
) -> None:
    """One that takes itself away and imports the next finds us again, and through us the next."""
    agent = write(tmp_path / "agent", marking("agent", more))
    image = write(tmp_path / "image", marking("image"))

    assert str(marks) == said(start("-c", SHOW, path=(agent, image)))


def test_children_of_an_agent_have_the_hook(tmp_path: Path) -> None:
    """OpenTelemetry takes its own folder from PYTHONPATH and leaves ours for the children."""
    agent = write(tmp_path / "agent", marking("agent", OTEL))
    code = (
        "import subprocess, sys\n"
        "show = 'import sys; print(type(sys.meta_path[0]).__name__, hasattr(sys, \"marks\"))'\n"
        "print(subprocess.check_output([sys.executable, '-c', show], text=True))"
    )

    assert "Finder False" == said(start("-c", code, path=(agent,)))


def test_one_in_a_virtual_environment_runs(tmp_path: Path) -> None:
    """In a virtual environment the hook works, and the environment's own sitecustomize runs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    write(site, {**marking("venv"), **torch()})
    code = f"{SHOW}; import torch; torch.cuda._lazy_init(); print(torch._C.calls[0])"
    told = said(start("-c", code, python=str(tmp_path / "venv" / "bin" / "python")))

    assert "['venv']\n(0.14, 0)" == told


def test_our_folder_under_other_names_is_ours(tmp_path: Path) -> None:
    """A link to our folder, or a second mention of it, is not taken for another sitecustomize."""
    link = tmp_path / "link"
    link.symlink_to(HOOK)
    code = "import sys; print([type(each).__name__ for each in sys.meta_path].count('Finder'))"

    assert "1" == said(start("-c", code, path=(HOOK, link), environ=SHARES))
