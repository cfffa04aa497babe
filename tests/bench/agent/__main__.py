"""Measure the agent: `python -m tests.bench.agent [--write docs/benchmarks.md] [part ...]`."""

import sys

from tests.bench._report import report
from tests.bench.agent import ticks

if __name__ == "__main__":
    parts = {"ticks": ticks.measure, "latency": ticks.measure_latency}
    sys.exit(report("agent", parts, sys.argv[1:]))
