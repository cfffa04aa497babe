"""Frameworks in a container that the driver limits, without a variable and with the webhook's."""

import datetime as dt
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from simulator.wheels.catalog import WHEEL_SETS, WheelSet
from tests.frameworks import report
from tests.frameworks.cases import HOOK, LIMIT_MIB, OF_A_LIMIT, OURS, Case, is_chosen
from tests.frameworks.running import Injected, Leaf, inject, run_probe

pytestmark = pytest.mark.frameworks

CONTEXT = 300
ROOM = LIMIT_MIB - CONTEXT
PIECE = 64
SPARED = LIMIT_MIB * 2 // 100
"""Two in a hundred: what a pool's blocks and pieces may leave of the limit."""

AT_ONCE = frozenset({"torch", "jax", "cupy"})
"""Whose probes can ask for all at once; TensorFlow counts in 32 bits, ONNX Runtime twice."""

ON = {"GPUFENCE_DRIVER_LIMITS": "on"}
HALF = "torch.cuda.set_per_process_memory_fraction(0.5)"
CAPPED = pytest.mark.parametrize("capped", [False, True], ids=["uncapped", "capped"])
CHOSEN = pytest.mark.parametrize(
    "wheels", [one for one in WHEEL_SETS if is_chosen(one.name)], ids=lambda one: one.name
)


@dataclass(frozen=True)
class Half:
    """How a framework gets half of the total: by variables, or by a program's own call."""

    variables: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)


HALVES = {
    "torch-2.15": Half({"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.5"}),
    "torch-2.10": Half({"PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.5"}),
    "torch-2.9": Half(asked={"between": f"import torch; {HALF}"}),
    "torch-2.5": Half(asked={"between": f"import torch; {HALF}"}),
    "jax-0.10": Half({"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}),
    "jax-0.4.23": Half({"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}),
    "cupy-12.3": Half({"CUPY_GPU_MEMORY_LIMIT": "50%"}),
}


def held(
    wheels: WheelSet, folder: Path, case: str, injected: Injected, *, capped: bool, **asked: Any
) -> int:
    """Let it grow until it is refused; note where that was, in MiB."""
    outcome = run_probe(wheels, folder, injected, asked, leaf=Leaf(LIMIT_MIB, capped))
    found: int = outcome.answer.get("held", 0)
    report.store_limited(
        wheels.name,
        f"{case}, {'capped' if capped else 'uncapped'}",
        {
            "version": wheels.version,
            "held_mib": found,
            "said": outcome.last_words[:200],
            "on": dt.datetime.now(dt.UTC).date().isoformat(),
        },
    )

    assert 0 == outcome.code, outcome.said
    assert outcome.answer["gpu"], outcome.said
    return found


@CAPPED
@CHOSEN
def test_without_a_variable_it_gets_its_limit(
    wheels: WheelSet, tmp_path: Path, *, capped: bool
) -> None:
    """Without a framework's variable all of the limit can be had but the context."""
    found = held(wheels, tmp_path, report.NOTHING, Injected({}), capped=capped)
    most = OF_A_LIMIT.get(wheels.framework, ROOM)

    assert most - SPARED <= found <= most


@CAPPED
@pytest.mark.parametrize(
    "wheels",
    [one for one in WHEEL_SETS if one.framework in AT_ONCE and is_chosen(one.name)],
    ids=lambda one: one.name,
)
def test_one_allocation_may_be_nearly_all(
    wheels: WheelSet, tmp_path: Path, *, capped: bool
) -> None:
    """What fits the limit less the context and two in a hundred can be had at once."""
    wanted = (OF_A_LIMIT.get(wheels.framework, ROOM) - SPARED) // 2 * 2
    leaf = Leaf(LIMIT_MIB, capped)
    outcome = run_probe(wheels, tmp_path, Injected({}), {"first": wanted}, leaf=leaf)

    assert wanted <= outcome.answer["held"] <= ROOM


@CAPPED
@pytest.mark.parametrize("hook", [{}, HOOK], ids=["variables", "hook"])
@CHOSEN
def test_with_the_webhooks_values_it_gets_no_less(
    wheels: WheelSet, tmp_path: Path, hook: dict[str, str], *, capped: bool
) -> None:
    """With the webhook's values beside the driver's limit nothing gets less than it did before."""
    injected = inject(Case("held by the driver", annotations=hook), tmp_path, ON)
    name = report.INJECTED if not hook else report.HOOKED
    found = held(wheels, tmp_path, name, injected, capped=capped)

    assert str(LIMIT_MIB) == injected.variables["NVIDIA_GPU_MEMORY_LIMIT"]
    assert OURS <= found <= ROOM


@CAPPED
@pytest.mark.parametrize("name", [name for name in HALVES if is_chosen(name)])
def test_a_share_is_of_one_of_two_totals(name: str, tmp_path: Path, *, capped: bool) -> None:
    """Half is half of the limit; by a device's size that is not capped it is half of the card."""
    (wheels,) = (one for one in WHEEL_SETS if one.name == name)
    half = HALVES[name]
    found = held(
        wheels, tmp_path, report.HALF, Injected(half.variables), capped=capped, **half.asked
    )
    of_size = name in report.BY_SIZE and not capped

    assert (ROOM if of_size else LIMIT_MIB // 2) - PIECE <= found <= ROOM
    assert of_size or found <= LIMIT_MIB // 2
