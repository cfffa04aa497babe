"""
The start-up hook in real frameworks: whatever way a process starts, the cap is there, or Python was
told to leave out what the hook needs.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.wheels.catalog import find_wheels
from simulator.workload.real.probe import SIGN
from tests.frameworks.cases import ALL, HOOK, OURS, Case
from tests.frameworks.chosen import is_chosen
from tests.frameworks.running import inject, run, run_probe

pytestmark = pytest.mark.frameworks

VERSIONS = [
    pytest.param(name, marks=[] if is_chosen(name) else pytest.mark.skip("not asked for by ONLY"))
    for name in ("torch-2.15", "torch-2.9", "torch-2.5")
]
SITE = Case("carried by a line in a site folder", annotations=HOOK)
PATH = Case("carried by PYTHONPATH", annotations={"gpufence.io/python-hook": "pythonpath"})
CARRIERS = pytest.mark.parametrize("carrier", [SITE, PATH], ids=["site", "path"])
CHILDREN = f"""
import json, multiprocessing, sys
sys.path.append({str(Path(__file__).resolve().parents[2])!r})

def work(answers):
    from simulator.workload.real.probe import probe
    answers.put(probe({{"framework": "torch"}}))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    answers = context.Queue()
    child = context.Process(target=work, args=(answers,))
    child.start()
    print(f"\\n{SIGN}{{json.dumps(answers.get())}}", flush=True)
    child.join()
"""


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_any_kind_is_capped(
    name: str, method: str, carrier: Case, tmp_path: Path
) -> None:
    """Forked and spawned processes keep to the cap like their parent."""
    (tmp_path / "program.py").write_text(CHILDREN)
    injected = inject(carrier, tmp_path)
    outcome = run(find_wheels(name), tmp_path, ("program.py", method), injected)

    assert OURS == outcome.answer.get("held"), outcome.said


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flags", [("-O",), ("-s",), ("-Xutf8",)])
def test_most_flags_change_nothing(
    name: str, flags: tuple[str, ...], carrier: Case, tmp_path: Path
) -> None:
    """The cap is there with every flag that leaves PYTHONPATH alone."""
    outcome = run_probe(find_wheels(name), tmp_path, inject(carrier, tmp_path), flags=flags)

    assert OURS == outcome.answer.get("held"), outcome.said


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_a_python_that_ignores_its_environment_is_capped(
    name: str, flag: str, tmp_path: Path
) -> None:
    """The line in the site folder is read also where Python is told to ignore its variables."""
    outcome = run_probe(find_wheels(name), tmp_path, inject(SITE, tmp_path), flags=(flag,))

    assert OURS == outcome.answer.get("held"), outcome.said


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_without_pythonpath_the_path_carries_nothing(name: str, flag: str, tmp_path: Path) -> None:
    """
    Told to ignore PYTHONPATH, Python has no hook by it; what PyTorch reads by itself still counts.
    """
    outcome = run_probe(find_wheels(name), tmp_path, inject(PATH, tmp_path), flags=(flag,))
    reads_it_itself = name == "torch-2.15"

    assert (OURS if reads_it_itself else ALL) == outcome.answer.get("held"), outcome.said


@CARRIERS
@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize("theirs", ["print('theirs ran')", "raise OSError('theirs ran')"])
def test_an_images_own_sitecustomize_runs_too(
    name: str, theirs: str, carrier: Case, tmp_path: Path
) -> None:
    """A sitecustomize of the image's own has its turn, also if it fails, and the cap is there."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(theirs)
    case = replace(carrier, user={"PYTHONPATH": str(own)})
    outcome = run_probe(find_wheels(name), tmp_path, inject(case, tmp_path))

    assert OURS == outcome.answer.get("held"), outcome.said
    assert "theirs ran" in outcome.said


def test_the_program_of_the_children_is_python() -> None:
    """The text that children are started from can be compiled, and answers as the probe does."""
    compile(CHILDREN, "program.py", "exec")

    assert json.dumps(SIGN)[1:-1] in CHILDREN
