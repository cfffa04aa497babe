"""CuPy, PaddlePaddle and CUDA.jl, whose limits are absolute, and programs without any."""

from __future__ import annotations

import re

from gpufence.quantity import MIB
from simulator.workload.frameworks.budget import (
    Budget,
    Decision,
    Device,
    Dies,
    Framework,
    Shortage,
    Variables,
    human,
)

CUPY_LIMIT = "CUPY_GPU_MEMORY_LIMIT"
PADDLE_LIMIT = "FLAGS_gpu_memory_limit_mb"
JULIA_LIMIT = "JULIA_CUDA_HARD_MEMORY_LIMIT"

_INTEGER_PREFIX = re.compile(r"\s*([+-]?\d+)")
_JULIA_SHAPE = re.compile(r"(\d+(?:\.\d+)?)\s*(%|[KMGT]i?B?|B)?", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


def _limited(limit: int, name: str, text: str) -> Budget:
    return Budget(limit or None, f"{name} is {text}")


def decide_cupy(variables: Variables, device: Device) -> Decision:
    text = variables.get(CUPY_LIMIT)
    if text is None:
        return Budget(None, f"{CUPY_LIMIT} is not set")
    try:
        if text.endswith("%"):
            share = float(text[:-1]) / 100
            limit = int(device.total * share) if 0 <= share <= 1 else -1
        else:
            limit = int(text)
    except ValueError as error:
        return Dies(f"ValueError: {error}")
    if limit < 0:
        return Dies(f"ValueError: memory limit size out of range: {text}")
    return _limited(limit, CUPY_LIMIT, text)


def complain_cupy(shortage: Shortage) -> str:
    text = (
        f"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating {shortage.wanted:,} bytes "
        f"(allocated so far: {shortage.in_use:,} bytes"
    )
    return text + (f", limit set to: {shortage.limit:,} bytes)." if shortage.limit else ").")


def decide_paddle(variables: Variables, device: Device) -> Decision:
    """
    Read what stands before the first letter, as the flags of C++ do; nothing readable is no limit.
    """
    del device
    text = variables.get(PADDLE_LIMIT, "")
    match = _INTEGER_PREFIX.match(text)
    if match is None:
        return Budget(None, f"{PADDLE_LIMIT} is not set")
    return _limited(int(match[1]) % 2**64 * MIB, PADDLE_LIMIT, text)


def complain_paddle(shortage: Shortage) -> str:
    return (
        f"ResourceExhaustedError: Out of memory error on GPU {shortage.device.index}. "
        f"Cannot allocate {human(shortage.wanted)} memory, {human(shortage.in_use)} memory has "
        f"been allocated and available memory is only {human(shortage.free)}."
    )


def decide_julia(variables: Variables, device: Device) -> Decision:
    text = variables.get(JULIA_LIMIT)
    if text is None:
        return Budget(None, f"{JULIA_LIMIT} is not set")
    match = _JULIA_SHAPE.fullmatch(text.strip())
    if match is None:
        return Dies(f"ERROR: ArgumentError: Could not parse {JULIA_LIMIT}={text!r}")
    number, unit = float(match[1]), (match[2] or "").upper()
    if unit == "%":
        return _limited(int(device.total * number / 100), JULIA_LIMIT, text)
    base = 1024 if "I" in unit else 1000
    return _limited(int(number * base ** _POWERS.get(unit[:1], 0)), JULIA_LIMIT, text)


def complain_julia(shortage: Shortage) -> str:
    return f"ERROR: Out of GPU memory trying to allocate {human(shortage.wanted)}"


def decide_none(variables: Variables, device: Device) -> Decision:
    del variables, device
    return Budget(None, "no framework, no limit")


def complain_none(shortage: Shortage) -> str:
    return f"CUDA error: out of memory (allocating {human(shortage.wanted)})"


CUPY = Framework("cupy", decide_cupy, complain_cupy)
PADDLE = Framework("paddle", decide_paddle, complain_paddle)
JULIA = Framework("julia", decide_julia, complain_julia)
NONE = Framework("none", decide_none, complain_none)
