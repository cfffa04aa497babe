"""What the hook decides where fresh interpreters do not come, and what its one file holds."""

# The hook is untyped, for Python 2.7 to parse it.
# mypy: allow-untyped-calls

import ast
import importlib
import pkgutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.python import sitecustomize
from webhook.python import sitecustomize as hook

LIMIT, FRACTION = "GPUFENCE_MEMORY_LIMIT_BYTES", "GPUFENCE_MEMORY_FRACTION"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), ("1", 1.0), (" 0.1 ", 0.1), ("1e-6", 1e-6)]
    + [(text, None) for text in ("", "0", "1.1", "-1", "nan", "inf", "abc", None)],
)
def test_a_share_lies_between_zero_and_one(text: str | None, value: float | None) -> None:
    """Zero, which some frameworks take for no limit, is no share; nor is what is out of range."""
    assert value == hook.share(text)


@pytest.mark.parametrize(
    ("fraction", "limit", "expected"),
    [
        ("0.000100", str(100 << 20), 99),
        ("0.14", None, None),
        ("0.14", "", None),
        ("0.14", "0", 0),
        ("0.14", "abc", None),
    ],
)
def test_a_rounded_fraction_makes_no_card_larger(
    monkeypatch: pytest.MonkeyPatch, fraction: str, limit: str | None, expected: int | None
) -> None:
    """
    A fraction was rounded down, which must not make the card, and so the share, look larger;
    without a limit the card's size is unknown.
    """
    monkeypatch.setenv(FRACTION, fraction)
    monkeypatch.delenv(LIMIT, raising=False)
    if limit is not None:
        monkeypatch.setenv(LIMIT, limit)

    assert expected == hook.limit_mb(0.0001)


def test_a_cap_that_the_program_lowered_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card is capped when it is chosen, and not again after the program asked for less."""
    monkeypatch.setenv(FRACTION, "0.140000")
    calls: list[Any] = []

    def set_fraction(fraction: float, device: int | None = None) -> None:
        calls.append((fraction, device or 0))

    cuda = SimpleNamespace(
        memory=SimpleNamespace(set_per_process_memory_fraction=set_fraction),
        set_device=lambda device: calls.append(("device", device)),
        set_per_process_memory_fraction=set_fraction,
        _lazy_call=lambda _: None,
        _get_device_index=lambda device, optional: 0 if optional and device is None else device,
    )
    library = SimpleNamespace(_cuda_setMemoryFraction=set_fraction)
    torch = SimpleNamespace(__version__="2.9.1", _C=library, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    hook.change_torch(cuda)
    cuda.set_device(1)
    cuda.set_per_process_memory_fraction(0.05, 1)
    cuda.set_device(1)

    assert [("device", 1), (0.14, 1), (0.05, 1), ("device", 1)] == calls


def test_a_loader_of_several_modules_changes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where one loader object serves several modules, as for a zip file, only the named one changes.
    """
    changed: list[str] = []
    monkeypatch.setitem(hook.CHANGES, "framework", lambda module: changed.append(module.__name__))
    loader = SimpleNamespace(exec_module=lambda _: None)
    hook.watched(SimpleNamespace(name="framework", loader=loader))
    for name in ("other", "framework"):
        loader.exec_module(SimpleNamespace(__name__=name))

    assert ["framework"] == changed


SOURCE = Path(sitecustomize.__file__)
TREE = ast.parse(SOURCE.read_text(encoding="utf-8"))
ANNOTATION_BYTES = 18 * 1024
BEYOND_2_7 = (
    *(ast.AnnAssign, ast.AsyncFunctionDef, ast.Await, ast.JoinedStr, ast.Match, ast.NamedExpr),
    *(ast.Nonlocal, ast.Starred, ast.TypeAlias if hasattr(ast, "TypeAlias") else ast.YieldFrom),
)


def test_it_fits_an_annotation() -> None:
    """All annotations of a pod share 256 KiB, of which the hook takes a fourteenth at most."""
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
