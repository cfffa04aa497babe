"""
How large the house is: figures of the tree as it stands, beside what is wanted of each.

`make check` prints them. A guard lets none of them grow: a change that brings one down writes the
new number here.
"""

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

from tests.support.tree import (
    files_of,
    files_of_tests,
    imported_by,
    module_name,
    nodes_of,
    product_files,
)
from tools import ROOT

SHELVES = (
    *("agent.concerns", "controller.keepers"),
    *(
        "kubectl_gpufence.verbs.dashboard",
        "kubectl_gpufence.gpushare",
        "kubectl_gpufence.verbs.idle",
    ),
    *(
        "kubectl_gpufence.verbs.recommend",
        "kubectl_gpufence.verbs.why",
        "webhook.checks",
        "webhook.command",
        "webhook.profiles",
        "gpufence.need",
        "gpufence.idle",
    ),
)
"""What a cluster may do without; only programs' lists name it, or its core (docs/adr/0025)."""

CORES_OWN = {"gpufence.idle": "controller"}
"""Releases are what the controller's core decides."""

BUDGETS = {
    "webhook.rewrite.burst": 45,
    "gpufence.burst": 90,
    "webhook.checks": 450,
    "gpufence.quota": 60,
    "kubectl_gpufence.verbs.dashboard.episodes": 95,
    "agent.concerns.capped": 200,
    "gpufence.capped": 240,
    "agent.concerns.driver": 600,
    "gpufence.canary": 20,
    "kubectl_gpufence.verbs.why": 485,
    "agent.concerns.shown": 160,
    "gpufence.memory_condition": 70,
    "kubectl_gpufence.said": 75,
    "gpufence.records": 150,
    "agent.concerns.history": 410,
    "agent.concerns.repeated": 60,
    "service.itself": 45,
    "service.renamed": 40,
    "kubectl_gpufence.completion": 70,
    "kubectl_gpufence.verbs.explain.loans": 35,
    "gpufence.need.levels": 60,
    "kubectl_gpufence.endings": 80,
    "kubectl_gpufence.verbs.explain.find": 75,
    "kubectl_gpufence.refusals": 30,
    "kubectl_gpufence.verbs.explain.gone": 70,
    "kubectl_gpufence.verbs.explain.release": 65,
    "agent.commands.verify": 842,
    "kubectl_gpufence.verbs.verify": 124,
    "webhook.driver_limits": 280,
    "kubectl_gpufence.verbs.doctor.checks_driver": 120,
    "kubectl_gpufence.verbs.doctor.checks_tenants": 92,
    "kubectl_gpufence.verbs.doctor.starting": 50,
    "kubectl_gpufence.verbs.doctor.trial_pod": 65,
}
"""Lines of code of shelves that came after the house was counted, each with a budget of its own."""

OPERATIONS = ROOT / "docs" / "operations.md"
VERBS = ROOT / "kubectl_gpufence" / "verbs" / "__init__.py"
WIDE = 88


class Figure(NamedTuple):
    """`most` is what was counted last, which may only fall; `wanted` is where it is to go."""

    most: float
    wanted: float | None


RECORDED = {
    "product modules": Figure(283, 275),
    "product lines of code": Figure(33760, 26500),
    "core modules that import a shelf": Figure(4, 8),
    "threads made by hand": Figure(4, 6),
    "modules with one importer": Figure(53, 60),
    "test files": Figure(529, 470),
    "test lines": Figure(96219, 60000),
    "product modules that unit tests import": Figure(189, 90),
    "settings": Figure(99, 85),
    "verbs of the plugin": Figure(12, 10),
    "metrics": Figure(63, 55),
    "metrics under an old name": Figure(8, 0),
    "median lines of a function": Figure(7, None),
    "95 of 100 functions have at most": Figure(24, None),
    "lines over 88 columns in a thousand": Figure(83, None),
}


def counted() -> dict[str, float]:
    """Count everything; the simulator is no part of the product here, nor are the tools."""
    functions = sorted(_functions())
    lines = [line for path in _product() for line in _text(path).splitlines()]
    wide = sum(len(line) > WIDE for line in lines)
    figures = (
        len(_counted()),
        sum(len(lines_of_code(path)) for path in _counted()),
        len(importers_of_shelves()),
        sum(_threads(path) for path in _product()),
        sum(len(readers_of_modules()[name]) == 1 for name in map(module_name, _counted())),
        len(files_of_tests()),
        sum(len(_text(path).splitlines()) for path in files_of_tests()),
        len(_unit_tested()),
        len(_named(r"^\| `(GPUFENCE_[A-Z_]+)`")),
        len(_verbs()),
        len(_named(r"`(gpufence_[a-z_]+)`")),
        len(re.findall(r"^\| `gpufence_\w+.*` \|.*` \|$", _text(OPERATIONS), re.MULTILINE)),
        statistics.median(functions),
        functions[len(functions) * 95 // 100],
        round(1000 * wide / len(lines)),
    )
    return dict(zip(RECORDED, figures, strict=True))


def spent() -> dict[str, int]:
    """Count the lines of code of each shelf that has a budget of its own."""
    return {
        shelf: sum(
            len(lines_of_code(path)) for path in _product() if _is_in(module_name(path), shelf)
        )
        for shelf in BUDGETS
    }


def lines_of_code(path: Path) -> set[int]:
    """Return the lines that are neither blank, comment, docstring nor import."""
    left_out: set[int] = set()
    for node in nodes_of(path):
        if _is_text(node) or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbered = enumerate(_text(path).splitlines(), start=1)
    return {
        number
        for number, line in numbered
        if number not in left_out and line.strip() and not line.lstrip().startswith("#")
    }


@cache
def readers_of_modules() -> dict[str, set[str]]:
    """Return which modules of the product import each one; entry points are imported by none."""
    modules = {module_name(path) for path in _product() if not path.name.startswith("__")}
    readers: dict[str, set[str]] = defaultdict(set)
    for path in product_files():
        for name in _imports(path):
            if name in modules:
                readers[name].add(module_name(path))
    return readers


def importers_of_shelves() -> dict[str, set[str]]:
    """Return which core modules import which shelves, the programs' lists among them."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in _product():
        if not _on_shelf(name := module_name(path)):
            shelves = {each for each in _imports(path) if _on_shelf(each)}
            found[name] |= {each for each in shelves if not _is_own(name, each)}
    return {name: shelves for name, shelves in found.items() if shelves}


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _on_shelf(module: str) -> bool:
    return any(_is_in(module, shelf) for shelf in SHELVES)


def _is_own(module: str, shelf: str) -> bool:
    program = module.partition(".")[0]
    return any(program == core and _is_in(shelf, own) for own, core in CORES_OWN.items())


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _product() -> list[Path]:
    return [path for path in product_files() if not path.is_relative_to(ROOT / "simulator")]


def _counted() -> list[Path]:
    return [
        path
        for path in _product()
        if not any(_is_in(module_name(path), shelf) for shelf in BUDGETS)
    ]


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return every module that may be meant; `from a import b` may mean `a.b`."""
    found: list[str] = []
    for node in nodes_of(path):
        found += imported_by(node)
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(found)


def _threads(path: Path) -> int:
    return sum(
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "Thread"
        for node in nodes_of(path)
    )


def _unit_tested() -> set[str]:
    modules = {module_name(path) for path in _product()}
    tests = files_of("tests/unit")
    return {name for path in tests for name in _imports(path) if name in modules}


def _named(pattern: str) -> set[str]:
    pages = (ROOT / "docs").glob("settings-*.md")
    return {name for page in pages for name in re.findall(pattern, _text(page), re.MULTILINE)}


def _verbs() -> set[str]:
    """Return the verbs of the plugin's list."""
    calls = [node for node in nodes_of(VERBS) if isinstance(node, ast.Call)]
    return {ast.unparse(call.args[0]) for call in calls if getattr(call.func, "id", "") == "Verb"}


def _functions() -> Iterator[int]:
    for path in _product():
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
