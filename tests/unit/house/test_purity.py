"""
What import-linter cannot say: pure modules touch no file, clock, environment, network or log.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.sources import imported_by, is_pure, pure_files, shown, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FORBIDDEN_MODULES = frozenset(
    {
        *("asyncio", "builtins", "concurrent", "ctypes", "datetime", "fcntl", "fileinput", "glob"),
        *("http", "importlib", "io", "logging", "mmap", "multiprocessing", "os", "pathlib"),
        *("platform", "queue", "random", "runpy", "sched", "secrets", "select", "selectors"),
        *("shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "syslog"),
        *("tempfile", "threading", "time", "urllib", "uuid", "warnings"),
    }
)
HARMLESS_MODULES = frozenset({"http", "urllib.parse"})  # names and texts, no network
FORBIDDEN_CALLS = frozenset({"open", "print", "input", "eval", "exec", "compile", "__import__"})


def impurities(tree: ast.AST) -> Iterator[str]:
    """
    Yield what makes a module impure, each with its line.
    """
    for node in ast.walk(tree):
        for name in imported_by(node):
            root = name.split(".")[0]
            ours = is_pure(name) or is_pure(root)
            if name in HARMLESS_MODULES or ours:
                continue
            if root not in sys.stdlib_module_names or root in FORBIDDEN_MODULES:
                yield f"line {getattr(node, 'lineno', 0)}: imports {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in FORBIDDEN_CALLS:
                yield f"line {node.lineno}: calls {node.func.id}"
        elif isinstance(node, ast.Global):
            yield f"line {node.lineno}: changes a global"


def test_pure_modules_are_pure() -> None:
    """
    A module that promises to be pure imports nothing that could read or change the world.
    """
    found = [f"{shown(path)} {text}" for path in pure_files() for text in impurities(tree_of(path))]

    assert [] == found


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
    """
    The check names every kind of impurity that it exists to find.
    """
    assert 1 == len(list(impurities(ast.parse(text))))
