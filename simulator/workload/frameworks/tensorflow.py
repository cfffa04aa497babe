"""TensorFlow: no fraction in its environment, only growth and a reserve that fails open."""

from __future__ import annotations

from gpufence.quantity import MIB
from simulator.workload.frameworks.budget import (
    Budget,
    Decision,
    Device,
    Framework,
    Shortage,
    Variables,
)

GROWTH = "TF_FORCE_GPU_ALLOW_GROWTH"
RESERVE = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB"

_SMALL_CARD = 2048 * MIB
_SMALL_CARD_RESERVE = 225
_RESERVE_BY_MAJOR = {7: 1050, 8: 1536}
_OLDEST_RESERVE = 500
_NEWEST_RESERVE = 1800
_NEWEST_MAJOR = 9


def decide(variables: Variables, device: Device) -> Decision:
    """Decide as 2.5 and newer do, for a program that sets nothing in code."""
    notes = []
    growth = variables.get(GROWTH)
    if growth not in {None, "true", "false"}:
        notes.append(f"{GROWTH} is {growth!r}, neither true nor false: ignored")
    reserve = _own_reserve(device)
    if (text := variables.get(RESERVE)) is not None:
        asked = _read_reserve(text)
        if asked is None:
            notes.append(f"{RESERVE} is {text!r}, no number of MiB: ignored")
        elif asked > device.free:
            notes.append(f"{RESERVE} exceeds the free memory: the request is ignored")
            reserve = device.free
        else:
            reserve = asked
    limit = device.free - reserve if reserve < device.free else device.free
    arena = 0 if growth == "true" else limit
    why = "grows within" if growth == "true" else "takes at once"
    return Budget(limit, f"{why} what is free but for a reserve", arena, tuple(notes))


def complain(shortage: Shortage) -> str:
    return (
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating "
        f"{shortage.wanted} bytes on /job:localhost/replica:0/task:0/device:GPU:"
        f"{shortage.device.index} by allocator GPU_{shortage.device.index}_bfc"
    )


def _own_reserve(device: Device) -> int:
    if device.free < _SMALL_CARD:
        return _SMALL_CARD_RESERVE * MIB
    major = device.capability[0]
    newest = _NEWEST_RESERVE if major >= _NEWEST_MAJOR else _OLDEST_RESERVE
    return _RESERVE_BY_MAJOR.get(major, newest) * MIB


def _read_reserve(text: str) -> int | None:
    digits = text.strip()
    return int(digits) * MIB if digits.isascii() and digits.isdigit() else None


TENSORFLOW = Framework("tensorflow", decide, complain)
