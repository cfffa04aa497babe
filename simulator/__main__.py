"""
Run one part of the simulator: `python -m simulator <command>`.

Each part is imported only when it is asked for, so that a workload starts as fast as an ordinary
program and a missing optional library stops nobody but the command that needs it.
"""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """Where a command's `main(argv) -> int` is found, and what the overview says about it."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command(
        "controlplane",
        "simulator.controlplane.__main__",
        "run a real Kubernetes control plane on this machine",
    ),
    Command(
        "build",
        "simulator.controlplane.build",
        "build the control plane's programs once, ahead of need",
    ),
    Command("nvml", "simulator.nvml.__main__", "make and show simulated graphics cards"),
    Command(
        "workload",
        "simulator.workload.__main__",
        "be a process that uses memory of a simulated card",
    ),
    Command(
        "wheels",
        "simulator.wheels.__main__",
        "build environments of real frameworks for workloads",
    ),
    Command("node", "simulator.node.__main__", "be a node that runs pods as local processes"),
    Command("cluster", "simulator.cluster.__main__", "run a real cluster of one node (root)"),
    Command("demo", "simulator.demo.__main__", "tell gpufence's story, with real programs"),
)


def overview() -> str:
    """Return what there is to run."""
    width = max(len(command.name) for command in COMMANDS)
    rows = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return (
        "usage: python -m simulator <command> [options]\n\n"
        f"commands:\n{rows}\n\n"
        "python -m simulator <command> --help says more."
    )


def main(argv: Sequence[str]) -> int:
    """Hand the remaining arguments to the named command."""
    if not argv:
        print(overview(), file=sys.stderr)
        return 2
    name, *rest = argv
    if name in {"-h", "--help"}:
        print(overview())
        return 0
    for command in COMMANDS:
        if command.name == name:
            answer = importlib.import_module(command.module).main(rest)
            return int(answer)
    print(f"python -m simulator: no command {name!r}\n\n{overview()}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
