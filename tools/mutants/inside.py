"""
Run tests on a tree in which one module is another: `python -m tools.mutants.inside MODULE PATH
TEST...`, the module's text on standard input. Nothing is written into the tree.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_MEMORY: Final = 4 << 30
"""A fault may lead to a list without end."""
_FIRST: Final = 4
_TEST_SECONDS: Final = 20
_MARKERS: Final = "not (nightly or soak or gpushare or release)"
_PYTEST: Final = (
    *("-x", "-q", "-m", _MARKERS, "--timeout", str(_TEST_SECONDS), "--hypothesis-seed", "0"),
    *("-p", "no:randomly", "-p", "no:cacheprovider", "--tb", "no", "--no-header"),
)


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the one module, and gives it another text."""

    def __init__(self, module: str, path: str, source: str) -> None:
        self._module, self._path, self._source = module, path, source

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        folders = [str(Path(self._path).parent)] if Path(self._path).stem == "__init__" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=folders
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._source, self._path, "exec"), module.__dict__)  # noqa: S102 - its purpose


def run(tests: Sequence[str]) -> int:
    """Run the first few, then twice as many, and so on: to collect all would take too long."""
    count = _FIRST
    while tests:
        code = int(pytest.main([*_PYTEST, *tests[:count]]))
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return code
        tests, count = tests[count:], 2 * count
    return 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    sys.meta_path.insert(0, Replaced(sys.argv[1], sys.argv[2], sys.stdin.read()))
    sys.exit(run(sys.argv[3:]))
