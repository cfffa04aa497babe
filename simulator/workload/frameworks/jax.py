"""JAX: what its CUDA plugin reads, and how it goes on without the card when it cannot."""

from __future__ import annotations

import ctypes
import math

from simulator.workload.frameworks.budget import (
    Budget,
    Decision,
    Device,
    Framework,
    OnCpu,
    Shortage,
    Variables,
)

OLD_NAME = "XLA_PYTHON_CLIENT_MEM_FRACTION"
NAME = "XLA_CLIENT_MEM_FRACTION"
ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
UNIFIED = "TF_FORCE_UNIFIED_MEMORY"

DEFAULT_FRACTION = 0.75
PAGE = 2 << 20
BACK_OFF = 0.9

_ALLOCATORS = frozenset({"default", "platform", "bfc", "cuda_async", "vmm"})
_UNCAPPED = frozenset({"platform", "cuda_async"})


def decide(variables: Variables, device: Device) -> Decision:
    """Decide as current versions do; an unreadable setting costs the card, not the process."""
    fraction = _fraction(variables)
    if isinstance(fraction, OnCpu):
        return fraction
    allocator = variables.get(ALLOCATOR, "default").lower()
    if allocator not in _ALLOCATORS:
        return OnCpu(f"{ALLOCATOR} must be one of {', '.join(sorted(_ALLOCATORS))}")
    if allocator in _UNCAPPED:
        return Budget(None, f"the {allocator} allocator has no limit")
    if variables.get(UNIFIED) in {"1", "true"}:
        return Budget(None, f"{UNIFIED} lifts the limit")
    limit = _round_up(device.total * fraction)
    arena = _preallocated(limit, device.free) if _preallocates(variables) else 0
    return Budget(limit, f"memory fraction {fraction:g}", arena)


def complain(shortage: Shortage) -> str:
    return (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        f"{shortage.wanted} bytes."
    )


def _fraction(variables: Variables) -> float | OnCpu:
    given = [variables[name] for name in (OLD_NAME, NAME) if variables.get(name)]
    if not given:
        return DEFAULT_FRACTION
    if len(given) > 1:
        return OnCpu(f"{OLD_NAME} and {NAME} were specified together")
    try:
        return ctypes.c_float(float(given[0])).value
    except ValueError:
        return OnCpu(f"could not convert string to float: {given[0]!r}")


def _preallocates(variables: Variables) -> bool:
    return variables.get(PREALLOCATE, "") not in {"false", "False", "0"}


def _round_up(amount: float) -> int:
    """Round to XLA's pages; what is no amount at all leaves nothing to allocate."""
    if not math.isfinite(amount) or amount <= 0:
        return 0
    return -(-int(amount) // PAGE) * PAGE


def _preallocated(limit: int, free: int) -> int:
    """Take the arena, or smaller ones in turn until one fits."""
    arena = limit
    while arena > free:
        arena = int(arena * BACK_OFF)
    return arena


JAX = Framework("jax", decide, complain)
