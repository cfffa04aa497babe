"""
The size budget and the manners that no linter checks.
"""

from __future__ import annotations

import ast
import re
import statistics
from typing import TYPE_CHECKING

import pytest

from tests.unit.house.sources import files_of_tests, product_files, shown, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE_LINES = 300
TEST_MODULE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 7
MEDIAN_MODULE_LINES = 120

Function = ast.FunctionDef | ast.AsyncFunctionDef
SILENCED = re.compile(r"#\s*(?:noqa|type: ignore)\S*(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(?P<why>.*)")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, Function))


@pytest.mark.parametrize("path", [*product_files(), *files_of_tests()], ids=shown)
def test_modules_and_functions_are_small(path: Path) -> None:
    """
    No module and no function outgrows the budget at which it has two reasons to change.
    """
    product = path in product_files()
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in _functions(path)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]
    wide = [
        f"{node.name} takes {len(node.args.args)} parameters"
        for node in _functions(path)
        if product and len(node.args.args) + len(node.args.kwonlyargs) > PARAMETERS + 1
    ]

    assert [] == long + wide
    assert len(_lines(path)) <= (MODULE_LINES if product else TEST_MODULE_LINES)


def test_the_typical_module_is_short() -> None:
    """
    The median module stays within what one reads in a sitting.
    """
    sizes = [len(_lines(path)) for path in product_files()]

    assert statistics.median(sizes) <= MEDIAN_MODULE_LINES


@pytest.mark.parametrize("path", [*product_files(), *files_of_tests()], ids=shown)
def test_every_silenced_check_says_why(path: Path) -> None:
    """
    A lint or type check is switched off only with its reason on the same line.
    """
    silent = [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(_lines(path), start=1)
        if (found := SILENCED.search(line))
        and "SILENCED = " not in line
        and not found["why"].strip(" -([").strip()
    ]

    assert [] == silent


@pytest.mark.parametrize("path", files_of_tests(), ids=shown)
def test_every_test_is_a_sentence(path: Path) -> None:
    """
    A test says in one sentence what it holds to be true.
    """
    silent = [
        node.name
        for node in _functions(path)
        if node.name.startswith("test_")
        and path.name.startswith("test_")
        and not (ast.get_docstring(node) or "").endswith((".", ":"))
    ]

    assert [] == silent
