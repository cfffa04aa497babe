"""The size budget and the manners that no linter checks."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import files_of_tests, files_of_tools, product_files, shown, tree_of

MODULE_LINES = 400
TEST_MODULE_LINES = 400
FUNCTION_LINES = 60
LINE = 100
PARAMETERS = 7
MANY_PARAMETERS = 12  # fixtures are parameters, too
MEDIAN_MODULE_LINES = 160

SKIPPED = re.compile(r"pytest\.(skip|xfail|importorskip)\(|mark\.(skip|skipif|xfail)\b")
MAY_SKIP = {
    "tests/frameworks/test_demo.py",  # what ONLY leaves out of make frameworks
    "tests/frameworks/test_hook.py",
    "tests/frameworks/test_layout.py",
    "tests/support/kubernetes.py",  # what an older Kubernetes cannot do, in make versions
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
SILENCED = re.compile(r"#\s*(?:noqa|type: ignore)\S*(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(?P<why>.*)")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, Function))


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
    long = [shown(path) for path in files if len(_lines(path)) > lines]
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
