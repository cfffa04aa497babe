"""
How long the shared domain takes: importing it, and the limits and shares of one pod.
"""

from __future__ import annotations

import subprocess
import sys
import timeit

from gpufence.dialects import Units
from gpufence.limits import Limits, Place, read_limits
from gpufence.pods import read_pod
from gpufence.quantity import GIB
from gpufence.share import Terms, allowance, reserve_bytes
from gpufence.wishes import NamespaceWords, read_wishes

ROUNDS = 5
CALLS = 5_000
MODULES = "gpufence.candidates, gpufence.limits, gpufence.plan, gpufence.share, gpufence.settings"
POD = {
    "metadata": {"annotations": {"gpufence.io/headroom": "auto", "team": "vision"}},
    "spec": {
        "containers": [
            {"name": "trainer", "resources": {"limits": {"aliyun.com/gpu-mem": "3", "cpu": "2"}}},
            {"name": "exporter", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}},
        ]
    },
}


def limits_and_shares() -> None:
    pod = read_pod(POD)
    wishes = read_wishes(pod.annotations, frozenset(item.name for item in pod.containers))
    limits = read_limits(pod, wishes, NamespaceWords(), Place(Units(), 15 * GIB))
    if not isinstance(limits, Limits):
        raise TypeError(f"the bench's own pod has no limits: {limits}")
    for part in limits.parts:
        terms = Terms(reserve_bytes((7, 5)), wishes.processes, wishes.headroom)
        allowance(part.limit_bytes or 0, 15 * GIB, terms).fraction_of(15 * GIB)


def import_milliseconds() -> float:
    """
    Time the import in fresh interpreters, best of several, less what an empty program takes.
    """
    script = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", script.format(MODULES)]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(ROUNDS)]
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    each = min(timeit.repeat(limits_and_shares, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6
    print(f"{'what':44} {'measured':>12} {'budget':>10}")
    print(f"{'import of gpufence':44} {import_milliseconds():9.1f} ms {'< 30 ms':>10}")
    print(f"{'limits and shares of a two-container pod':44} {each:9.1f} us {'< 50 us':>10}")


if __name__ == "__main__":
    main()
