"""Which faults are put into a module, which tests are run on them, and how that is told."""

import importlib
import sys
from pathlib import Path

import pytest

from tools.mutants import mutants
from tools.mutants.__main__ import Outcome, Player, main, play_all, report, sample
from tools.mutants.inside import Replaced
from tools.mutants.picking import module_name, nearness, pick, read_imports


def faults(source: str) -> set[str]:
    """Return each mutant's own line, without what ruff would take away again."""
    return {
        each.put_into(source).splitlines()[each.line - 1].strip()
        for each in mutants("a.py", source)
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", {"a = (b <= c)", "a = (b >= c)"}),
        ("a = b is None", {"a = (b is not None)"}),
        ("a = b not in c", {"a = (b in c)"}),
        ("a = b < c == d", {"a = (b <= c == d)", "a = (b >= c == d)", "a = (b < c != d)"}),
        ("a = b + c", {"a = (b - c)"}),
        ("a = b and c", {"a = (b or c)"}),
        ("a = not b", {"a = (b)"}),
        ("a = 7", {"a = 8", "a = (6)"}),
        ("a = True", {"a = False"}),
        ("a = min(b)", {"a = max(b)"}),
        ("a = b if c else d", {"a = b if (not c) else d"}),
        ("a = [b for b in c if d]", {"a = [b for b in c if (not d)]"}),
        ("def f(a=None): return a", {"def f(a=1): return a", "def f(a=None): return None"}),
        ("def f():\n  é()\n  return ''", {"pass"}),
        ("def f():\n  raise a", {"pass"}),
        ("for a in b:\n  a += c\n  break", {"pass"}),
        (
            "def f(a: int | None): return isinstance(a, b | c)",
            {"def f(a: int | None): return None"},
        ),
    ],
)
def test_one_fault_at_a_time(source: str, expected: set[str]) -> None:
    """Each operator, constant, condition, statement and answer is another once."""
    assert expected == faults(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "__slots__ = (1,)",
        "A = B | C",
        "a: Final[int] = b",
        "@dataclass(frozen=True)\nclass A(B[1]):\n  a: int",
        "class A(Protocol):\n  def f(self, a=1): ...",
        "if TYPE_CHECKING:\n  a = 1",
        "a = f'{b + 1}'",
        "def f():\n  return False",
    ],
)
def test_what_no_test_could_notice_stays(source: str) -> None:
    """Texts, types, decorators and what is never run are left alone."""
    assert set() == faults(source) - {"return True"}


def test_a_fault_is_shown_as_a_diff() -> None:
    """A survivor is shown with a line before it and one after."""
    source = "a = b\nc = d < e\nf = g\n"
    first = mutants("a.py", source)[0]

    assert "@@ -1,3 +1,3 @@\n a = b\n-c = d < e\n+c = (d <= e)\n f = g" == first.diff(source)


IMPORTS = {
    "tests.unit.test_seam": frozenset({"kube.outer", "kube.other"}),
    "tests.unit.test_own": frozenset({"kube.inner"}),
    "tests.unit.test_else": frozenset({"kube.other"}),
    "tests.property.test_own": frozenset({"kube.inner"}),
    "tests.unit.house.test_sizes": frozenset({"kube.inner"}),
    "tests.integration.test_own": frozenset({"kube.inner"}),
    "tests.support.builders": frozenset({"kube.inner"}),
    "kube": frozenset({"kube.inner"}),
    "kube.outer": frozenset({"kube.inner"}),
    "kube.inner": frozenset[str](),
    "kube.other": frozenset[str](),
}


def test_what_is_about_a_module_comes_first() -> None:
    """Tests come by how much of what they import leads there; those of other kinds not at all."""
    picked = pick(Path("/"), IMPORTS, "kube.inner", "")

    assert [
        "tests/unit/test_own.py",
        "tests/property/test_own.py",
        "tests/unit/test_seam.py",
    ] == picked
    assert 0.5 == nearness(IMPORTS, "kube.inner")["tests.unit.test_seam"]


def test_tests_of_the_package_come_before_others() -> None:
    """A test among those of the module's package is nearer than one that imports less."""
    near = {
        "tests.unit.kube.test_seam": frozenset({"kube.inner", "kube.other"}),
        "tests.unit.test_seam": frozenset({"kube.inner"}),
    }

    assert "tests/unit/kube/test_seam.py" == pick(Path("/"), near, "kube.inner", "")[0]


def test_the_tree_is_asked_about_tools_alone() -> None:
    """Tests of the tree as it is written say something of the tools, and of nothing else."""
    about = {"tests.unit.house.test_made": frozenset({"tools.chart", "kube.inner"})}

    assert ["tests/unit/house/test_made.py"] == pick(Path("/"), about, "tools.chart", "")
    assert [] == pick(Path("/"), about, "kube.inner", "")


def test_what_names_the_function_comes_before(tmp_path: Path) -> None:
    """A test file that names the changed function is run before nearer ones that do not."""
    for name in IMPORTS:
        path = (tmp_path / name.replace(".", "/")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("the_inner()" if name == "tests.unit.test_seam" else "")
    picked = pick(tmp_path, IMPORTS, "kube.inner", "the_inner")

    assert "tests/unit/test_seam.py" == picked[0]


def test_imports_are_read_from_the_tree(tmp_path: Path) -> None:
    """Modules of ours count, whether a module or a name of it is imported, and no others."""
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "__init__.py").write_text("import os\nimport a.b\n")
    (folder / "b.py").write_text("from a import c, x\n")
    (folder / "c.py").write_text("")
    (folder / "d").mkdir()
    (folder / "d" / "__init__.py").write_text("import_module(f'a.d.{name}')")
    (folder / "d" / "e.py").write_text("")

    expected = {
        "a": frozenset({"a.b"}),
        "a.b": frozenset({"a", "a.c"}),
        "a.c": frozenset[str](),
        "a.d": frozenset({"a.d.e"}),
        "a.d.e": frozenset[str](),
    }
    assert expected == read_imports(tmp_path, ("a",))
    assert "a.b" == module_name(Path("a/b/__init__.py"))


def test_a_module_is_replaced_only_in_memory() -> None:
    """The one module has the other text, and every other is found as ever, also within it."""
    finder = Replaced("tools.unheard", "tools/mutants/__init__.py", "A = 2")
    sys.meta_path.insert(0, finder)
    try:
        assert 2 == importlib.import_module("tools.unheard").A
        assert importlib.import_module("tools.unheard.picking").pick is not pick
        assert finder.find_spec("tools.lock") is None
    finally:
        sys.meta_path.remove(finder)
        for name in ("tools.unheard", "tools.unheard.picking"):
            sys.modules.pop(name, None)


def test_the_same_seed_draws_the_same() -> None:
    """A sample is another with another seed, and only of what was asked for."""
    drawn = sample("gpufence/quantity", 5, 1)

    assert drawn == sample("gpufence/quantity", 5, 1)
    assert drawn != sample("gpufence/quantity", 5, 2)
    assert {"gpufence/quantity.py"} == {mutant.path for mutant in drawn}
    assert [] == sample("kube/transport", 5, 1)


def test_a_fault_is_killed_by_a_test_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """A mutant that a test notices is killed by that test, and one that none runs survives."""
    (mutant,) = sample("gpufence/times", 1, 1)
    player = Player()
    killed = player.play(mutant.path, "FAULT = 1", ["tests/unit/gpufence/test_texts.py"], 60)
    outlived = list(play_all(player, [mutant], lambda _: [], 60))

    assert killed.killed
    assert killed.by.startswith("tests/unit/gpufence/test_texts.py")
    assert [False] == [outcome.killed for _, outcome in outlived]
    assert "[1/1] SURVIVED" in capsys.readouterr().out


def test_too_many_survivors_are_red(capsys: pytest.CaptureFixture[str]) -> None:
    """Under 95 of 100 the verb fails, and what survived is shown."""
    (mutant,) = sample("gpufence/quantity", 1, 1)
    killed, survived = (
        (mutant, Outcome(killed=True, by="", seconds=1)),
        (mutant, Outcome(killed=False, by="", seconds=1)),
    )

    assert 0 == report([killed] * 19 + [survived])
    assert 1 == report([killed] * 18 + [survived])
    assert mutant.diff(Path(mutant.path).read_text()) in capsys.readouterr().out


def test_what_matches_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A path at which nothing is pure is an error of usage."""
    with pytest.raises(SystemExit):
        main(["--only", "nothing/there"])

    assert "no pure module begins with 'nothing/there'" in capsys.readouterr().err
