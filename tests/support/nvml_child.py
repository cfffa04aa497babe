"""
A client of NVML in a process of its own: evaluates what it is asked, with pynvml's names at hand.

The library can only be chosen when a process starts, so every claim about pynvml is made here. Each
line of input is a Python expression, each line of output a JSON object with `value` or `error`.
"""

import ctypes
import json
import sys
from typing import Any

import pynvml

SENTINEL = 0xAB


def card(index: int) -> Any:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def instance(index: int, number: int) -> Any:
    return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card(index), number)


def function(name: str) -> Any:
    return pynvml._nvmlGetFunctionPointer(name)


def limit(index: int, group: str, hard: int, soft: int = 0) -> None:
    wanted = pynvml.c_nvmlSetMemoryLimits_v1_t(group.encode(), soft, hard)
    pynvml.nvmlDeviceSetMemoryLimits_v1(card(index), wanted)


def limits(index: int, group: str) -> list[int]:
    """Read a control group's soft and hard limit, and what counts to it."""
    asked = pynvml.c_nvmlGetMemoryLimits_v1_t(group.encode())
    pynvml.nvmlDeviceGetMemoryLimits_v1(card(index), asked)
    return [asked.softLimit, asked.hardLimit, asked.currentUsed]


def raw(name: str, device: Any, capacity: int | None) -> tuple[int, int]:
    """Call a list function as C would: its code and count; a capacity of None is no buffer."""
    count = ctypes.c_uint(capacity or 0)
    buffer = None if capacity is None else (ctypes.c_char * (32 * max(capacity, 1)))()
    code = function(name)(device, ctypes.byref(count), buffer)
    return code, count.value


def touched(name: str, device: Any, capacity: int) -> tuple[int, int]:
    """Say how many entries a list function answers and how many bytes it wrote for them."""
    size = 64 * capacity
    last = 0
    for sentinel in (SENTINEL, 0xFF - SENTINEL):
        buffer = (ctypes.c_ubyte * size)(*([sentinel] * size))
        count = ctypes.c_uint(capacity)
        function(name)(device, ctypes.byref(count), buffer)
        written = [place for place in range(size) if buffer[place] != sentinel]
        last = max(last, *(place + 1 for place in written))
    return count.value, last


def percent_between(first: Any, second: Any) -> float:
    """Return the share of work in the time between two samples of performance monitoring."""
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.version, wanted.numMetrics = pynvml.NVML_GPM_METRICS_GET_VERSION, 1
    wanted.sample1, wanted.sample2 = first, second
    wanted.metrics[0].metricId = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
    return float(pynvml.nvmlGpmMetricsGet(wanted).metrics[0].value)


def plain(value: Any) -> Any:
    """Turn pynvml's structures into what JSON can carry."""
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, *_ in value._fields_}
    if isinstance(value, ctypes._SimpleCData):
        return value.value
    if isinstance(value, ctypes._Pointer):
        return ctypes.addressof(value.contents)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__"):
        return {name: plain(item) for name, item in vars(value).items()}
    return value


def answer(expression: str, names: dict[str, Any]) -> dict[str, Any]:
    """Evaluate, and tell an exception by its class, its code and its text."""
    try:
        if " = " in expression:
            exec(expression, names)
            return {"value": None}
        return {"value": plain(eval(expression, names))}
    except Exception as error:  # noqa: BLE001 - whatever pynvml raises is the answer
        code = getattr(error, "value", None)
        return {"error": type(error).__name__, "code": code, "text": str(error)}


def main() -> None:
    names: dict[str, Any] = {**vars(pynvml), **globals()}
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(line.strip(), names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
