"""Kinds of tests do not reach into each other: what several of them need is in tests/support."""

import ast

from tests.support.sources import ROOT, files_of_tests, imported_by, shown, tree_of

SHARED = "support"


def test_a_test_imports_its_own_kind_and_what_is_shared() -> None:
    """A kind of tests can be read, moved and deleted without looking at the others."""
    foreign = [
        f"{shown(path)} imports {name}"
        for path in files_of_tests()
        for node in ast.walk(tree_of(path))
        for name in imported_by(node)
        if name.startswith("tests.")
        and name.split(".")[1] not in {SHARED, path.relative_to(ROOT / "tests").parts[0]}
    ]

    assert [] == foreign
