"""What the hook decides where fresh interpreters, tests/contract/python_hook, do not come."""

# The hook is untyped, for Python 2.7 to parse it.
# mypy: allow-untyped-calls

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.python import sitecustomize as hook

LIMIT, FRACTION = "GPUFENCE_MEMORY_LIMIT_BYTES", "GPUFENCE_MEMORY_FRACTION"


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.5", 0.5), ("1", 1.0), (" 0.1 ", 0.1), ("1e-6", 1e-6)]
    + [(text, None) for text in ("", "0", "1.1", "-1", "nan", "inf", "abc", None)],
)
def test_a_share_lies_between_zero_and_one(text: str | None, value: float | None) -> None:
    """
    Zero, which some frameworks take for no limit, is no share; nor is anything else out of range.
    """
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
