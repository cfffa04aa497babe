"""Modules and functions are small, and pure ones are pure."""

import ast
import re
import statistics
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.support.tree import (
    files_of_tests,
    files_of_tools,
    imported_by,
    is_pure,
    module_name,
    nodes_of,
    product_files,
    pure_files,
    shown,
    tree_of,
)
from tools import ROOT

MODULE_LINES = 400
MOUNTED_ALONE = ROOT / "webhook" / "python" / "sitecustomize.py"
"""One file by its nature: the bytes of an annotation bound it (tests/unit/webhook)."""

TEST_MODULE_LINES = 400
FUNCTION_LINES = 60
LINE = 100
PARAMETERS = 7
MANY_PARAMETERS = 12  # fixtures are parameters, too
MEDIAN_MODULE_LINES = 160

SKIPPED = re.compile(r"pytest\.(skip|xfail|importorskip)\(|mark\.(skip|skipif|xfail)\b")
MAY_SKIP = {
    "tests/frameworks/test_demo.py",  # what ONLY leaves out of make frameworks
    "tests/frameworks/test_matrix.py",
    "tests/support/site.py",  # what an older Kubernetes cannot do, in make versions
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
SILENCED = re.compile(r"#\s*(?:noqa|type: ignore)\S*(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(?P<why>.*)")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _functions(path: Path) -> Iterator[Function]:
    return (node for node in nodes_of(path) if isinstance(node, Function))


@pytest.mark.parametrize(
    ("files", "lines", "parameters"),
    [
        (product_files(), MODULE_LINES, PARAMETERS),
        (files_of_tools(), MODULE_LINES, PARAMETERS),
        (files_of_tests(), TEST_MODULE_LINES, MANY_PARAMETERS),
    ],
    ids=["product", "tools", "tests"],
)
def test_modules_and_functions_are_small(files: list[Path], lines: int, parameters: int) -> None:
    """No module and no function outgrows the budget at which it has two reasons to change."""
    several = [path for path in files if path != MOUNTED_ALONE]
    long = [shown(path) for path in several if len(_lines(path)) > lines]
    large = [
        problem
        for path in files
        for node in _functions(path)
        for problem in _largeness(node, parameters, f"{shown(path)} {node.name}")
    ]

    assert [] == long
    assert [] == large


def test_the_typical_module_is_short() -> None:
    """The median module stays within what one reads in a sitting."""
    sizes = [len(_lines(path)) for path in product_files()]

    assert statistics.median(sizes) <= MEDIAN_MODULE_LINES


def test_every_silenced_check_says_why() -> None:
    """A lint or type check is switched off only with its reason on the same line."""
    silent = [
        f"{shown(path)} line {number}: {line.strip()}"
        for path in [*product_files(), *files_of_tools(), *files_of_tests()]
        for number, line in enumerate(_lines(path), start=1)
        if (found := SILENCED.search(line))
        and "SILENCED = " not in line
        and not found["why"].strip(" -([").strip()
    ]

    assert [] == silent


def test_a_short_docstring_stands_on_one_line() -> None:
    """A text of one line that fits beside its quotes is written so."""
    tall = [
        f"{shown(path)} line {number}"
        for path in [*product_files(), *files_of_tools(), *files_of_tests()]
        for number, (opening, text, closing) in _three_lines(path)
        if opening.strip() == closing.strip() == '"""'
        and text.strip()
        and not text.rstrip().endswith(('"', "\\"))
        and len(text.rstrip()) + 6 <= LINE
    ]

    assert [] == tall


def _three_lines(path: Path) -> Iterator[tuple[int, tuple[str, str, str]]]:
    lines = _lines(path)
    return enumerate(zip(lines, lines[1:], lines[2:], strict=False), start=1)


def test_every_test_is_a_sentence() -> None:
    """A test says in one sentence what it holds to be true."""
    silent = [
        f"{shown(path)} {node.name}"
        for path in files_of_tests()
        if path.name.startswith("test_")
        for node in _functions(path)
        if node.name.startswith("test_")
        and not (ast.get_docstring(node) or "").endswith((".", ":"))
    ]

    assert [] == silent


def test_no_test_is_skipped() -> None:
    """A test that this machine lacks something for says what it needs, and the run says so."""
    skipping = {
        shown(path)
        for path in files_of_tests()
        if any(SKIPPED.search(line) for line in _lines(path))
    }

    assert MAY_SKIP == skipping


def _largeness(node: Function, parameters: int, name: str) -> Iterator[str]:
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if length > FUNCTION_LINES:
        yield f"{name} has {length} lines"
    # One more than promised: `self` does not count.
    if len(node.args.args) + len(node.args.kwonlyargs) > parameters + 1:
        yield f"{name} takes {len(node.args.args)} parameters"


FORBIDDEN_MODULES = frozenset(
    {
        *("asyncio", "builtins", "concurrent", "ctypes", "datetime", "fcntl", "fileinput", "glob"),
        *("http", "importlib", "io", "logging", "mmap", "multiprocessing", "os", "pathlib"),
        *("platform", "queue", "random", "runpy", "sched", "secrets", "select", "selectors"),
        *("shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "syslog"),
        *("tempfile", "threading", "time", "urllib", "uuid", "warnings"),
    }
)
EXCUSED = {
    "gpufence/dialects/__init__.py": {"importlib"},  # loads its own modules by their names
    "tools/chart/template.py": {"yaml"},  # quotes one text
    "gpufence/times.py": {"datetime"},  # reads and writes moments, and never asks what time it is
    "webhook/rewrite/__init__.py": {"orjson"},  # tells how large a pod is: fast
}
HARMLESS_MODULES = frozenset({"http", "urllib.parse"})  # names and texts, no network
CACHES = {
    "gpufence.plan.write_amounts": 64,
    "service.logs._clock": 1,
    "webhook.frameworks.table.blank_settings": 64,
    "webhook.frameworks.figures.container_figures": 128,
    "webhook.rewrite.injection.own_settings": 128,
    "webhook.python.sitecustomize.CAPTURES": "",
    "webhook.python.sitecustomize.WATCHED": "",
}
"""What functions of the product remember, and how much of it at most; in pure modules only sums."""

REMEMBERING = frozenset({"cache", "lru_cache", "cached_property"})
EMPTY = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "WeakKeyDictionary"})
FORBIDDEN_CALLS = frozenset({"open", "print", "input", "eval", "exec", "compile", "__import__"})


def impurities(tree: ast.AST, excused: Collection[str] = ()) -> Iterator[str]:
    """Yield what makes a module impure, each with its line."""
    for node in ast.walk(tree):
        for name in imported_by(node):
            root = name.split(".")[0]
            ours = is_pure(name) or is_pure(root)
            if name in HARMLESS_MODULES or name in excused or ours:
                continue
            if root not in sys.stdlib_module_names or root in FORBIDDEN_MODULES:
                yield f"line {getattr(node, 'lineno', 0)}: imports {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in FORBIDDEN_CALLS:
                yield f"line {node.lineno}: calls {node.func.id}"
        elif isinstance(node, ast.Global):
            yield f"line {node.lineno}: changes a global"


def test_pure_modules_are_pure() -> None:
    """A module that promises to be pure imports nothing that could read or change the world."""
    found = [
        f"{shown(path)} {text}"
        for path in pure_files()
        for text in impurities(tree_of(path), EXCUSED.get(shown(path), set()))
    ]

    assert [] == found


def memories(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield what a module could remember: decorated functions with bounds, and empty containers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for item in node.decorator_list:
                name, _, bound = ast.unparse(item).partition("(")
                if name.rpartition(".")[2] in REMEMBERING:
                    yield node.name, bound.removeprefix("maxsize=").partition(",")[0].rstrip(")")
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty(node.value):
            name, _, kind = ast.unparse(node).partition(" =")[0].partition(": ")
            if not name.lstrip("_").startswith("NO") and "Mapping[" not in kind:
                yield name, ""


def test_what_functions_remember_is_listed_with_its_bound() -> None:
    """A module has no cache, or one that is known here and cannot grow without end."""
    remembered = {
        f"{module_name(path)}.{name}": bound
        for path in product_files()
        if not path.is_relative_to(ROOT / "simulator")
        for name, bound in memories(tree_of(path))
    }

    assert {name: str(bound) for name, bound in CACHES.items()} == remembered


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@cache\ndef f(): ...", [("f", "")]),
        ("@functools.lru_cache(maxsize=None)\ndef f(): ...", [("f", "None")]),
        ("@lru_cache(maxsize=16, typed=True)\ndef f(): ...", [("f", "16")]),
        ("class A:\n    @cached_property\n    def f(self): ...", [("f", "")]),
        ("_seen: dict[str, int] = {}", [("_seen", "")]),
        ("_seen = defaultdict(list)", [("_seen", "")]),
        ("TABLE = {1: 2}\ndef f():\n    found = {}", []),
        ("NOTHING: dict[str, int] = {}\nempty: Mapping[str, int] = {}", []),
    ],
)
def test_the_check_for_memories_finds(text: str, expected: list[tuple[str, str]]) -> None:
    """The check knows every form of a cache, and leaves tables alone."""
    assert expected == list(memories(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from time import monotonic",
        "import kubernetes",
        "import kube.client",
        "print('hello')",
        "text = open('/etc/passwd').read()",
        "def f():\n    global x\n    x = 1",
    ],
)
def test_the_check_itself_finds(text: str) -> None:
    """The check names every kind of impurity that it exists to find."""
    assert 1 == len(list(impurities(ast.parse(text))))


def _is_empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in EMPTY
    return isinstance(value, ast.Dict | ast.List) and not ast.unparse(value).strip("{}[]")
