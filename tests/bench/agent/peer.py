"""
The same cards read through nvitop's Python API: `python -m tests.bench.agent.peer ROUNDS`.

What it prints is the CPU of one look in milliseconds: at the memory of each card and at the
processes on it with what they hold, which is what the agent reads when it reads most, and at
everything that nvitop's own snapshot has.
"""

import json
import sys
import time
from collections.abc import Callable

from nvitop import (  # type: ignore[import-untyped] # it ships no types
    Device,
    take_snapshots,
)


def look(devices: list[Device]) -> int:
    """Read what the agent reads, and whose each process is by the time it started."""
    found = 0
    for device in devices:
        device.memory_info()
        for process in device.processes().values():
            process.gpu_memory()
            process.create_time()
            found += 1
    return found


def milliseconds(rounds: int, work: Callable[[], object]) -> float:
    work()
    began = time.process_time()
    for _ in range(rounds):
        work()
    return (time.process_time() - began) / rounds * 1000


def main(rounds: int) -> None:
    devices = Device.all()
    figures = {
        "processes": look(devices),
        "look": milliseconds(rounds, lambda: look(devices)),
        "snapshot": milliseconds(max(rounds // 10, 1), lambda: take_snapshots(devices)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(int(sys.argv[1]))
