"""
What TensorFlow is told: never more than the share, in the form that it can take.
"""

# The hook is untyped, for Python 2.7 to parse it.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from webhook.python import sitecustomize as hook

PROTOS = "tensorflow.core.protobuf.config_pb2"


class Config:
    """
    Imitates ConfigProto as far as the hook uses it.
    """

    def __init__(self, fraction: float = 0.0, *limits: list[float]) -> None:
        groups = [SimpleNamespace(memory_limit_mb=each) for each in limits]
        self.gpu_options = SimpleNamespace(
            per_process_gpu_memory_fraction=fraction,
            experimental=SimpleNamespace(virtual_devices=groups),
        )

    def CopyFrom(self, other: Config) -> None:  # noqa: N802 - protobuf's name
        self.gpu_options = deepcopy(other.gpu_options)

    @property
    def fraction(self) -> float:
        value: float = self.gpu_options.per_process_gpu_memory_fraction
        return value

    @property
    def limits(self) -> list[list[float]]:
        return [each.memory_limit_mb for each in self.gpu_options.experimental.virtual_devices]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFENCE_TF_FRACTION", "0.1")
    monkeypatch.setenv("GPUFENCE_MEMORY_FRACTION", "0.14")
    monkeypatch.setenv("GPUFENCE_MEMORY_LIMIT_BYTES", str(1400 << 20))
    protos = SimpleNamespace(ConfigProto=Config)
    monkeypatch.setitem(sys.modules, PROTOS, protos)


@pytest.mark.parametrize(("asked", "got"), [(0.0, 0.1), (0.9, 0.1), (0.1, 0.1), (0.02, 0.02)])
def test_a_fraction_comes_down_to_the_share(asked: float, got: float) -> None:
    """
    Zero, which means the whole card, and anything greater become the share.
    """
    assert got == hook.clamped(Config(asked)).fraction


def test_no_config_becomes_one() -> None:
    """
    Where a program gives no config it gets one with the share.
    """
    assert 0.1 == hook.clamped(None).fraction


def test_without_a_share_a_config_is_the_same_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nothing is copied or made where there is no share.
    """
    monkeypatch.setenv("GPUFENCE_TF_FRACTION", "")
    own = Config(0.9)

    assert own is hook.clamped(own)
    assert hook.clamped(None) is None


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ([[3000.0, 1000.0]], [[749, 249]]),
        ([[500.0], []], [[500], [999]]),
        ([[0.5, 1e9]], [[1, 998]]),
    ],
)
def test_virtual_devices_share_the_share(asked: list[list[float]], got: list[list[int]]) -> None:
    """
    On a card of 10,000 MiB virtual devices have a tenth together, and no fraction beside it.
    """
    config = hook.clamped(Config(0.0, *asked))

    assert got == config.limits
    assert 0 == config.fraction


def test_a_rounded_fraction_makes_no_card_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A fraction was rounded down, which must not make the card, and so the share, look larger.
    """
    monkeypatch.setenv("GPUFENCE_MEMORY_FRACTION", "0.000100")
    monkeypatch.setenv("GPUFENCE_MEMORY_LIMIT_BYTES", str(100 << 20))

    assert 99 == hook.limit_mb(0.0001)


@pytest.mark.parametrize("value", [None, "", "0", "abc"])
def test_virtual_devices_of_an_unknown_card_stay(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    """
    Without the card's size the program's limits are as good as any.
    """
    monkeypatch.delenv("GPUFENCE_MEMORY_LIMIT_BYTES")
    if value is not None:
        monkeypatch.setenv("GPUFENCE_MEMORY_LIMIT_BYTES", value)

    assert [[3000]] == hook.clamped(Config(0.0, [3000.0])).limits


class Modern:
    """
    Imitates a context that makes its config, as since 1.14.
    """

    @property
    def config(self) -> Config:
        return Config(0.9)


def test_a_context_makes_a_lower_config() -> None:
    """
    What devices are started with has the share.
    """
    module = SimpleNamespace(Context=type("Context", (), {"config": Modern.config}))
    hook.change_context(module)

    assert 0.1 == module.Context().config.fraction


def test_an_old_context_is_handed_a_lower_config() -> None:
    """
    Before 1.14 the context keeps the config that it is given, or none.
    """

    class Old:
        def __init__(self, config: Config | None = None) -> None:
            self.kept = config

    module = SimpleNamespace(Context=Old)
    hook.change_context(module)

    assert 0.1 == module.Context().kept.fraction
    assert 0.02 == module.Context(Config(0.02)).kept.fraction


@pytest.mark.parametrize(("context", "got"), [(Modern, None), (object, 0.1)])
def test_a_session_without_a_config_inherits_where_it_can(context: type, got: Any) -> None:
    """
    A session takes the context's config where there is one, else a new one.
    """

    class BaseSession:
        def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
            self.given = (target, graph, config)

    module = SimpleNamespace(BaseSession=BaseSession, context=SimpleNamespace(Context=context))
    hook.change_session(module)
    _, _, config = module.BaseSession().given
    _, _, lowered = module.BaseSession("", None, Config(0.9)).given

    assert (got, 0.1) == (config and config.fraction, lowered.fraction)


def test_listing_devices_asks_for_the_share() -> None:
    """
    The first allocator of a card is made with the share.
    """

    def list_local_devices(session_config: Any = None) -> Any:
        return session_config

    module = SimpleNamespace(list_local_devices=list_local_devices)
    hook.change_device_lib(module)

    assert 0.1 == module.list_local_devices().fraction


def test_a_server_is_defined_with_the_share() -> None:
    """
    A server of distributed training starts its devices with the share.
    """

    def make(config: Config) -> SimpleNamespace:
        return SimpleNamespace(default_session_config=config)

    module = SimpleNamespace(_make_server_def=make)
    hook.change_server_lib(module)

    assert 0.1 == module._make_server_def(Config(0.9)).default_session_config.fraction
