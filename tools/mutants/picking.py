"""Which tests reach a module, those first that are most about it; none that needs an API server."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KINDS: Final = {"golden": 2.0, "unit": 1.0, "property": 0.5, "contract": 0.3, "http": 0.1}
"""What is quick comes first."""
_CONTRACTS: Final = ("cuda", "nvml", "debian", "browser", "broker")
LEFT_OUT: Final = ("tests/http/release/", *(f"tests/contract/{each}/" for each in _CONTRACTS))
"""What is about programs that are built first."""
_OF_TREE: Final = "tests/unit/house/"
"""What is about the tree as it is written, but for the tests of the tools."""
_NAMED: Final = 4.0
_AT_HOME: Final = 4.0
"""Tests of the same package are about it, however much else they import."""
_FAR: Final = 8

Imports = dict[str, frozenset[str]]


def read_imports(root: Path, packages: tuple[str, ...]) -> Imports:
    """Return which modules of these packages each of them imports, by their names too."""
    files = {
        module_name(path.relative_to(root)): path
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
    }
    found: Imports = {}
    for name, path in files.items():
        text = path.read_text(encoding="utf-8")
        by_name = {
            each for each in files if "import_module(" in text and each.startswith(f"{name}.")
        }
        found[name] = frozenset({*_imported(ast.parse(text), files), *by_name})
    return found


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def pick(root: Path, imports: Imports, module: str, within: str) -> list[str]:
    """Return the test files that reach a module; what names the function counts more."""
    near = nearness(imports, module)
    scores: dict[str, float] = {}
    for name, score in near.items():
        path = f"{name.replace('.', '/')}.py"
        kind = path.removeprefix("tests/").partition("/")[0]
        left_out = LEFT_OUT if module.startswith("tools.") else (*LEFT_OUT, _OF_TREE)
        if kind in KINDS and "/test_" in path and not path.startswith(left_out):
            named = bool(within) and re.search(rf"\b{within}\b", (root / path).read_text("utf-8"))
            home = f"/{module.partition('.')[0].replace('kubectl_gpufence', 'plugin')}" in path
            scores[path] = (
                score * KINDS[kind] * (_NAMED if named else 1) * (_AT_HOME if home else 1)
            )
    return sorted(scores, key=lambda path: (-scores[path], path))


def nearness(imports: Mapping[str, frozenset[str]], module: str) -> dict[str, float]:
    """
    Return how much each module is about this one: the part of its imports that leads there, whether
    at once or by what those import.
    """
    near = {module: 1.0}
    for _ in range(_FAR):
        near = {
            name: part
            for name, found in imports.items()
            if found and (part := sum(near.get(each, 0.0) for each in found) / len(found))
        }
        near[module] = 1.0
    return near


def _imported(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module
