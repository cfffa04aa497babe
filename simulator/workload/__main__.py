"""Be a process that uses memory of a simulated card: `python -m simulator workload --help`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gpufence.errors import GpufenceError, InvalidError, Problem
from gpufence.names import SIMULATOR_STATE
from gpufence.quantity import MIB, read_bytes
from simulator.nvml.layout import Lists
from simulator.nvml.state import State
from simulator.workload import script
from simulator.workload.errors import NoCardError, StoppedError, WorkloadError
from simulator.workload.frameworks import FRAMEWORKS
from simulator.workload.memory import VISIBLE, AllocatorProgram, FrameworkMemory, choose_cards
from simulator.workload.run import RunContext, ScriptRun
from simulator.workload.signals import SignalClock, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simulator.workload.run import TenantMemory

USAGE_ERROR = 2
TENANT = "simulator.workload.real.tenant"


class StepLog:
    """One line per step, with the seconds since the start and the PID."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self._start
        print(f"{seconds:9.3f}s pid {os.getpid()}: {text}", flush=True)


def main(argv: Sequence[str]) -> int:
    """Follow the script, in this process or as a program of a real framework."""
    arguments = parser().parse_args(argv)
    if arguments.wheels is None:
        return follow(arguments, partial(_simulated, arguments))
    try:
        become_real(arguments, tuple(argv))
    except GpufenceError as error:
        print(f"python -m simulator workload: {error}", file=sys.stderr)
        return USAGE_ERROR


def follow(arguments: argparse.Namespace, take: Callable[[StepLog], Sequence[TenantMemory]]) -> int:
    """Follow the script; out of memory or unreadable settings end it as they end a real program."""
    log = StepLog()
    workers = Workers(log.say)
    clock = SignalClock(deaf_to_term=arguments.on_term == "ignore", child_ended=workers.reap)
    context = RunContext(clock, workers, log.say, patient=arguments.on_oom == "wait")
    try:
        steps = script.read_script(arguments.script)
        memories = take(log)
    except InvalidError as error:
        print(f"python -m simulator workload: {error}", file=sys.stderr)
        return USAGE_ERROR
    except WorkloadError as error:
        print(error, file=sys.stderr)
        return error.code
    except GpufenceError as error:
        print(f"python -m simulator workload: {error}", file=sys.stderr)
        return 1
    run = ScriptRun(memories, context)
    try:
        return run.follow(steps)
    except WorkloadError as error:
        print(error, file=sys.stderr, flush=True)
        return error.code
    except StoppedError as stopped:
        log.say(str(stopped))
        return stopped.code
    finally:
        run.close()


def _simulated(arguments: argparse.Namespace, log: StepLog) -> list[FrameworkMemory]:
    variables = os.environ
    state = State.open(state_path(arguments))
    framework = FRAMEWORKS[arguments.framework]
    context = read_bytes(arguments.context, "--context")
    lists = Lists[arguments.list.upper()]
    program = AllocatorProgram(framework, variables, context, lists)
    places = choose_cards(state, arguments.card, variables)
    memories = [FrameworkMemory(state, place, index, program) for index, place in enumerate(places)]
    _introduce(memories, arguments.framework, log)
    return memories


def state_path(arguments: argparse.Namespace) -> Path:
    path = arguments.state or os.environ.get(SIMULATOR_STATE)
    if not path:
        raise NoCardError(
            "RuntimeError: no CUDA-capable device is detected "
            f"(neither --state nor {SIMULATOR_STATE} names a state file)"
        )
    return Path(path)


def become_real(arguments: argparse.Namespace, argv: tuple[str, ...]) -> NoReturn:
    """Go on as a program of the framework's own Python, with the same PID."""
    from simulator.wheels.catalog import find_wheels  # noqa: PLC0415 - others start without
    from simulator.wheels.launch import become, ours  # noqa: PLC0415 - the same

    wheels = find_wheels(arguments.wheels)
    _check_real(script.read_script(arguments.script))
    if arguments.uncap and wheels.framework != "torch":
        raise InvalidError(Problem("--uncap", wheels.name, "is no PyTorch", "leave it out"))
    settings = {}
    if context := read_bytes(arguments.context, "--context"):
        settings["GPUFENCE_SIMULATOR_CONTEXT_MIB"] = str(-(-context // MIB))
    if arguments.card is not None:
        settings["CUDA_VISIBLE_DEVICES"] = arguments.card
    become(wheels, state_path(arguments), ours(TENANT, *argv), settings)


def _check_real(steps: Sequence[script.Step]) -> None:
    """
    Refuse what only a simulated framework can do: kernels do not run, and contexts do not fork.
    """
    for step in steps:
        match step.action:
            case script.Busy() | script.Fork() | script.Hold(managed=True) | script.Serve():
                reason = "cannot be done with a real framework on a simulated card"
                raise InvalidError(Problem("script", step.text, reason, "leave it out"))
            case _:
                continue


def _introduce(memories: Sequence[FrameworkMemory], framework: str, log: StepLog) -> None:
    for memory in memories:
        limit = memory.budget.limit
        cap = "no cap" if limit is None else f"cap {limit // MIB} MiB"
        log.say(f"{framework} on {memory.name}: {cap} ({memory.budget.why})")
        for note in memory.budget.notes:
            log.say(note)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m simulator workload",
        description="A process that uses memory of a simulated card, one line per step.",
        epilog=str(script.__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("script", help="such as 'hold 2Gi; after 5s grow 512Mi/s to 6Gi; exit 0'")
    made.add_argument("--state", help=f"the state file; default ${SIMULATOR_STATE}")
    made.add_argument(
        "--card", help=f"index, index:instance or UUID, several by commas; default ${VISIBLE}"
    )
    made.add_argument(
        "--framework",
        choices=FRAMEWORKS,
        default="none",
        help="whose variables and messages (default none: no cap)",
    )
    made.add_argument(
        "--wheels",
        metavar="NAME",
        help="run a real framework instead: an environment of make frameworks, such as torch-2.15,"
        " or a framework for its newest",
    )
    made.add_argument(
        "--uncap",
        action="store_true",
        help="with --wheels: reset the framework's cap by its own function, as a program may",
    )
    made.add_argument(
        "--context", default="0", help="memory of the CUDA context, outside the cap, such as 400Mi"
    )
    made.add_argument(
        "--on-oom", choices=("exit", "wait"), default="exit", help="out of memory: end, or try on"
    )
    made.add_argument(
        "--on-term", choices=("exit", "ignore"), default="exit", help="what SIGTERM does"
    )
    made.add_argument(
        "--list",
        choices=[one.name.lower() for one in Lists if one.name],
        default="compute",
        help="in which of NVML's process lists it appears",
    )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
