"""The hook is one small file that travels in an annotation and runs where we cannot test."""

import ast
import importlib
import pkgutil
import sys
from pathlib import Path

from webhook.python import sitecustomize

SOURCE = Path(sitecustomize.__file__)
TREE = ast.parse(SOURCE.read_text(encoding="utf-8"))
ANNOTATION_BYTES = 16 * 1024
BEYOND_2_7 = (
    *(ast.AnnAssign, ast.AsyncFunctionDef, ast.Await, ast.JoinedStr, ast.Match, ast.NamedExpr),
    *(ast.Nonlocal, ast.Starred, ast.TypeAlias if hasattr(ast, "TypeAlias") else ast.YieldFrom),
)


def test_it_fits_an_annotation() -> None:
    """All annotations of a pod share 256 KiB, of which the hook takes a sixteenth at most."""
    assert SOURCE.stat().st_size < ANNOTATION_BYTES


def test_it_is_plain_ascii() -> None:
    """Python 2.7 refuses other characters in a file that declares no encoding."""
    assert SOURCE.read_text(encoding="utf-8").isascii()


def test_its_folder_offers_nothing_else_to_import() -> None:
    """A folder on the user's path must not hide any other module of the user's."""
    assert ["sitecustomize"] == [each.name for each in pkgutil.iter_modules([str(SOURCE.parent)])]


def test_importing_it_under_another_name_changes_nothing() -> None:
    """Only as the sitecustomize of an interpreter does it act."""
    before = list(sys.meta_path)
    importlib.reload(sitecustomize)

    assert before == sys.meta_path


def test_it_uses_no_syntax_beyond_python_2_7() -> None:
    """An old interpreter would complain at every start of what it cannot parse."""
    calls = [node for node in ast.walk(TREE) if isinstance(node, ast.Call)]
    spread = {id(each) for node in calls for each in node.args if isinstance(each, ast.Starred)}
    newer = [
        type(node).__name__
        for node in ast.walk(TREE)
        if isinstance(node, BEYOND_2_7) and id(node) not in spread
    ]
    functions = [node for node in ast.walk(TREE) if isinstance(node, ast.FunctionDef)]

    assert [] == newer
    assert not [each.name for each in functions if each.args.kwonlyargs or each.returns]


def test_it_imports_only_what_a_start_has_loaded() -> None:
    """At the top only `os` and `sys` are imported, which every interpreter has by then."""
    names = [each.name for node in TREE.body if isinstance(node, ast.Import) for each in node.names]

    assert ["os", "sys"] == names
    assert not [node for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom)]
