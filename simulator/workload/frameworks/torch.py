"""PyTorch's caching allocator and its two environment variables."""

from __future__ import annotations

import re

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

OLD_NAME = "PYTORCH_CUDA_ALLOC_CONF"
NAME = "PYTORCH_ALLOC_CONF"
FRACTION = "per_process_memory_fraction"
ABORTED = 134

_OTHER_KEYS = frozenset(
    {
        "backend",
        "expandable_segments",
        "garbage_collection_threshold",
        "graph_capture_record_stream_reuse",
        "max_non_split_rounding_mb",
        "max_split_size_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "release_lock_on_cudamalloc",
        "roundup_power2_divisions",
    }
)
_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")
_NUMBER_PREFIX = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


def decide(variables: Variables, device: Device) -> Decision:
    """Decide as 2.10 and newer do: a set old name, even an empty one, hides the new one."""
    name = OLD_NAME if OLD_NAME in variables else NAME
    fraction = None
    for key, value in _options(variables.get(name, "")):
        if key == FRACTION:
            answer = _read_fraction(value)
            if isinstance(answer, Dies):
                return answer
            fraction = answer
        elif key not in _OTHER_KEYS:
            return Dies(f"RuntimeError: Unrecognized key '{key}' in {name}")
    if fraction is None:
        return Budget(None, f"{name} sets no {FRACTION}")
    return Budget(int(device.size * fraction), f"{name} sets {FRACTION} {fraction:g}")


def decide_old(variables: Variables, device: Device) -> Decision:
    """
    Decide as 2.9 and older do: the new name has no effect, the key in the old one is an error.
    """
    del device
    for key, _ in _options(variables.get(OLD_NAME, "")):
        if key not in _OTHER_KEYS:
            return Dies(f"RuntimeError: Unrecognized CachingAllocator option: {key}")
    return Budget(None, f"this version knows no {FRACTION}")


def complain(shortage: Shortage) -> str:
    device = shortage.device
    text = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {human(shortage.wanted)}. "
        f"GPU {device.index} has a total capacity of {human(device.total)} of which "
        f"{human(shortage.free)} is free. This process has {human(shortage.in_use)} memory in use."
    )
    if shortage.limit is None:
        return text
    return f"{text} {human(shortage.limit)} allowed by {FRACTION}."


def _options(text: str) -> list[tuple[str, str]]:
    pairs = (part.partition(":") for part in _OUTSIDE_BRACKETS.split(text) if part.strip())
    return [(key.strip(), value.strip()) for key, _, value in pairs]


def _read_fraction(value: str) -> float | Dies:
    if not value:
        return Dies("terminate called after throwing an instance of 'c10::Error'", ABORTED)
    match = _NUMBER_PREFIX.match(value)
    if match is None:
        return Dies("ValueError: stod")
    fraction = float(match[1])
    if not 0.0 <= fraction <= 1.0:
        return Dies(f"RuntimeError: {FRACTION} is invalid, set it in [0.0, 1.0]")
    return fraction


TORCH = Framework("torch", decide, complain)
OLD_TORCH = Framework("torch-2.9", decide_old, complain)
