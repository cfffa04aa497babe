"""
The lower bound beside the upper one: a module is about one whole subject, and a name means one
thing.
"""

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import (
    PACKAGES,
    ROOT,
    files_of,
    module_name,
    product_files,
    shown,
    tree_of,
)

LEAST_MEDIAN = 100
"""The median module of a package has no fewer lines; service is a few small things for all."""

SMALL = 40
SMALL_BUT_APART = {
    "agent.health": "port: pure, beside the program that asks it for the kubelet",
    "simulator.cluster.init": "entry point: the first process of a machine",
}
"""Modules of fewer lines of code with one importer or none, and why they are not part of it."""


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "service"])
def test_the_typical_module_is_worth_opening(package: str) -> None:
    """
    Half of a package's modules at least hold as much as makes a subject; a dialect is one file,
    however little there is to say.
    """
    files = [path for path in files_of(package) if path.parent.name != "dialects"]
    sizes = [len(text.splitlines()) for text in map(_text, files) if text]

    assert LEAST_MEDIAN <= statistics.median(sizes)


def test_what_is_small_is_read_by_several() -> None:
    """A module of a few lines that only one other imports is part of that one, or says why not."""
    readers = _readers()
    small = {
        name
        for path in product_files()
        if not path.name.startswith("__")
        and len(readers[name := module_name(path)]) <= 1
        and _lines_of_code(path) < SMALL
    }

    assert SMALL_BUT_APART.keys() == small


def test_a_class_name_means_one_thing() -> None:
    """Whoever searches for a class of the product finds one."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in product_files():
        for node in ast.walk(tree_of(path)):
            if path.is_relative_to(ROOT / "simulator"):
                continue
            if isinstance(node, ast.ClassDef):
                places[node.name].append(shown(path))
    several = {name: files for name, files in places.items() if len(files) > 1}

    assert {} == several


def _readers() -> dict[str, set[str]]:
    """Return which modules of the product import each one."""
    modules = {module_name(path) for path in product_files()}
    readers: dict[str, set[str]] = defaultdict(set)
    for path in product_files():
        for node in ast.walk(tree_of(path)):
            for name in _imported(node):
                if name in modules:
                    readers[name].add(module_name(path))
    return readers


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield what a statement may import; `from a import b` may mean a module `a.b`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _lines_of_code(path: Path) -> int:
    """Count the lines that are neither blank nor comment nor docstring."""
    texts = {
        line
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(_text(path).splitlines(), start=1)
    return sum(
        number not in texts and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in lines
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
