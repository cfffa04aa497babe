"""
What torch is told: the smaller of our share and the program's, on the cards of this process.
"""

# The hook is untyped, for Python 2.7 to parse it.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from webhook.python import sitecustomize as hook

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*hook.RANKS, "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPUFENCE_MEMORY_FRACTION", "0.140000")


def changed(
    monkeypatch: pytest.MonkeyPatch, version: str, count: int
) -> tuple[SimpleNamespace, list[Any]]:
    """
    Return a torch.cuda that the hook has changed, and what its allocator is told.
    """
    calls: list[Any] = []
    queue: list[Callable[[], object]] = []

    def set_fraction(fraction: float, device: int | None = None) -> None:
        calls.append((fraction, device or 0))

    memory = SimpleNamespace(set_per_process_memory_fraction=set_fraction)
    cuda = SimpleNamespace(
        memory=memory,
        queue=queue,
        device_count=lambda: count,
        set_device=lambda device: calls.append(("device", device)),
        set_per_process_memory_fraction=set_fraction,
        _lazy_call=queue.append,
        _get_device_index=lambda device, optional: 0 if optional and device is None else device,
    )
    library = SimpleNamespace(
        _cuda_getDevice=lambda: 0,
        _cuda_setDevice=lambda device: calls.append(("device", device)),
        _cuda_setMemoryFraction=set_fraction,
    )
    torch = SimpleNamespace(__version__=version, _C=library, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    hook.change_torch(cuda)
    return cuda, calls


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
    ("setting", "cap"),
    [
        ("", 0.14),
        ("per_process_memory_fraction:0.05", 0.05),
        ("max_split_size_mb:64, per_process_memory_fraction : 0.05", 0.05),
        ("per_process_memory_fraction:0.5", 0.14),
        ("per_process_memory_fraction:abc", 0.14),
    ],
)
def test_the_allocators_setting_may_be_smaller(
    monkeypatch: pytest.MonkeyPatch, setting: str, cap: float
) -> None:
    """
    The cap is the smaller of our share and a readable fraction of the allocator's own setting.
    """
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", setting)

    assert cap == hook.torch_share()


def test_a_planner_gets_its_setting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In a server that plans for itself our share does not count.
    """
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace())
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.2")

    assert 0.2 == hook.torch_share()


def test_without_our_share_there_is_no_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The program's own setting is left to torch where we have no share.
    """
    monkeypatch.delenv("GPUFENCE_MEMORY_FRACTION")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "per_process_memory_fraction:0.2")

    assert hook.torch_share() is None


@pytest.mark.parametrize(
    ("version", "rank", "calls"),
    [
        ("2.10.0", "1", [(0.14, 0), (0.14, 1), ("device", 0)]),
        ("2.9.1", "1", [(0.14, 1), ("device", 0)]),
        ("2.9.1", "x", [(0.14, 0), (0.14, 1), ("device", 0)]),
        ("unknown", "1", [(0.14, 1), ("device", 0)]),
    ],
)
def test_the_queue_caps_the_cards(
    monkeypatch: pytest.MonkeyPatch, version: str, rank: str, calls: list[Any]
) -> None:
    """
    Where a cap costs a context a rank caps its own card, and the current card is restored.
    """
    monkeypatch.setenv("LOCAL_RANK", rank)
    cuda, told = changed(monkeypatch, version, 2)
    cuda.queue[0]()

    assert calls == told


def test_choosing_a_card_caps_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A card is capped when it is chosen, and a cap the program lowered stays lowered.
    """
    cuda, told = changed(monkeypatch, "2.9.1", 2)
    cuda.set_device(1)
    cuda.set_per_process_memory_fraction(0.05, 1)
    cuda.set_device(1)

    assert [("device", 1), (0.14, 1), (0.05, 1), ("device", 1)] == told


def test_a_greater_fraction_comes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The program cannot raise the cap through either name of the function.
    """
    cuda, told = changed(monkeypatch, "2.13.0", 1)
    cuda.memory.set_per_process_memory_fraction(0.9)
    cuda.set_per_process_memory_fraction(fraction=1.0, device=0)

    assert [(0.14, 0), (0.14, 0)] == told


def test_a_child_process_owns_no_card_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One of several processes without a rank waits until it chooses a card.
    """
    processes = SimpleNamespace(current_process=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "multiprocessing.process", processes)

    assert [] == hook.own_devices(2)


def test_a_torch_without_caps_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A torch before 1.8 is not touched.
    """
    cuda = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="1.7.1"))
    hook.change_torch(cuda)

    assert SimpleNamespace() == cuda
