"""How long the shared domain takes: importing it, and the limits and shares of one pod."""

import subprocess
import sys
import timeit
from collections.abc import Callable

from gpufence.annotations import NamespaceOptions, PodOptions, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.limits import Limits, read_limits
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB
from gpufence.share import ShareTerms, allowance, reserve_bytes

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


Read = tuple[Pod, PodOptions]


def read() -> Read:
    pod = read_pod(POD)
    return pod, read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))


def limits_and_shares(pod: Pod, options: PodOptions) -> None:
    limits = read_limits(pod, options, NamespaceOptions(), CandidateCard(Units(), 15 * GIB))
    if not isinstance(limits, Limits):
        raise TypeError(f"the bench's own pod has no limits: {limits}")
    for part in limits.parts:
        terms = ShareTerms(reserve_bytes((7, 5)), options.processes, options.headroom)
        allowance(part.limit_bytes or 0, 15 * GIB, terms).fraction_of(15 * GIB)


def import_milliseconds() -> float:
    """Time the import in fresh interpreters, best of several, less what an empty program takes."""
    script = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", script.format(MODULES)]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(ROUNDS)]
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    pod, options = read()
    each = _microseconds(lambda: limits_and_shares(pod, options))
    print(f"{'what':44} {'measured':>12} {'budget':>10}")
    print(f"{'import of gpufence':44} {import_milliseconds():9.1f} ms {'< 30 ms':>10}")
    print(f"{'reading a two-container pod':44} {_microseconds(read):9.1f} us")
    print(f"{'its limits and shares':44} {each:9.1f} us {'< 50 us':>10}")


def _microseconds(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


if __name__ == "__main__":
    main()
