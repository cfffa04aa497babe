"""
The finder touches the named modules only, and the search for the hidden file skips our own.
"""

# The hook is untyped, for Python 2.7 to parse it.
# mypy: allow-untyped-calls

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from webhook.python import sitecustomize as hook

if TYPE_CHECKING:
    from types import ModuleType

    import pytest


def test_other_modules_are_none_of_its_business() -> None:
    """
    For any other name the finder leaves the search to the others at once.
    """
    assert hook.Finder().find_spec("json") is None


def test_a_named_module_is_changed_after_its_own_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """
    The change comes when the module has run, with the loader it would have had.
    """
    (tmp_path / "framework.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[int] = []
    monkeypatch.setitem(hook.CHANGES, "framework", lambda module: seen.append(module.value))
    finder = hook.Finder()
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    spec = finder.find_spec("framework")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert [1] == seen


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


def test_it_is_not_asked_in_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A finder that asks all finders gets no answer from us while we ask it.
    """
    answers: list[object] = []
    finder = hook.Finder()

    class Circle:
        def find_spec(self, name: str, path: object, target: object) -> None:
            answers.append((name, path, target, finder.find_spec(name)))

    monkeypatch.setattr(sys, "meta_path", [finder, Circle()])

    assert finder.find_spec("torch.cuda") is None
    assert [("torch.cuda", None, None, None)] == answers


def test_a_second_run_finds_the_first_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One interpreter has one finder, and frameworks that are already there are changed once.
    """
    changed: list[ModuleType] = []
    monkeypatch.setattr(hook, "CHANGES", {"json": changed.append})
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])

    assert hook.install() is hook.install() is sys.meta_path[0]
    assert [sys.modules["json"]] == changed


def test_the_hidden_one_is_found_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Each folder's sitecustomize has one turn; our own folder, under any name, has none.
    """
    (tmp_path / "sitecustomize.py").touch()
    link = tmp_path / "link"
    link.symlink_to(Path(hook.__file__).parent)
    monkeypatch.setattr(sys, "path", [str(Path(hook.__file__).parent), str(link), str(tmp_path)])
    finder = hook.Finder()

    assert str(tmp_path / "sitecustomize.py") == hook.find_hidden(finder).origin
    assert hook.find_hidden(finder) is None
