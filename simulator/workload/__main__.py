"""
Be a process that uses memory of a simulated card: `python -m simulator workload --help`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError, InvalidError
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
    from collections.abc import Mapping, Sequence

USAGE_ERROR = 2


class StepLog:
    """
    One line per step, with the seconds since the start and the PID.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()

    def say(self, text: str) -> None:
        seconds = time.monotonic() - self._start
        print(f"{seconds:9.3f}s pid {os.getpid()}: {text}", flush=True)


def main(argv: Sequence[str]) -> int:
    """
    Follow the script; out of memory or unreadable settings end it as they end a real program.
    """
    arguments = _parser().parse_args(argv)
    log = StepLog()
    workers = Workers(log.say)
    clock = SignalClock(deaf_to_term=arguments.on_term == "ignore", child_ended=workers.reap)
    context = RunContext(clock, workers, log.say, patient=arguments.on_oom == "wait")
    try:
        steps = script.read_script(arguments.script)
        memories = _open(arguments, os.environ)
    except InvalidError as error:
        print(f"python -m simulator workload: {error}", file=sys.stderr)
        return USAGE_ERROR
    except WorkloadError as error:
        print(error, file=sys.stderr)
        return error.code
    except GpufenceError as error:
        print(f"python -m simulator workload: {error}", file=sys.stderr)
        return 1
    _introduce(memories, arguments.framework, log)
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


def _open(arguments: argparse.Namespace, variables: Mapping[str, str]) -> list[FrameworkMemory]:
    path = arguments.state or variables.get(SIMULATOR_STATE)
    if not path:
        raise NoCardError(
            "RuntimeError: no CUDA-capable device is detected "
            f"(neither --state nor {SIMULATOR_STATE} names a state file)"
        )
    state = State.open(Path(path))
    framework = FRAMEWORKS[arguments.framework]
    context = read_bytes(arguments.context, "--context")
    lists = Lists[arguments.list.upper()]
    program = AllocatorProgram(framework, variables, context, lists)
    places = choose_cards(state, arguments.card, variables)
    return [FrameworkMemory(state, place, index, program) for index, place in enumerate(places)]


def _introduce(memories: Sequence[FrameworkMemory], framework: str, log: StepLog) -> None:
    for memory in memories:
        limit = memory.budget.limit
        cap = "no cap" if limit is None else f"cap {limit // MIB} MiB"
        log.say(f"{framework} on {memory.name}: {cap} ({memory.budget.why})")
        for note in memory.budget.notes:
            log.say(note)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulator workload",
        description="A process that uses memory of a simulated card, one line per step.",
        epilog=str(script.__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("script", help="such as 'hold 2Gi; after 5s grow 512Mi/s to 6Gi; exit 0'")
    parser.add_argument("--state", help=f"the state file; default ${SIMULATOR_STATE}")
    parser.add_argument(
        "--card", help=f"index, index:instance or UUID, several by commas; default ${VISIBLE}"
    )
    parser.add_argument(
        "--framework",
        choices=FRAMEWORKS,
        default="none",
        help="whose variables and messages (default none: no cap)",
    )
    parser.add_argument(
        "--context", default="0", help="memory of the CUDA context, outside the cap, such as 400Mi"
    )
    parser.add_argument(
        "--on-oom", choices=("exit", "wait"), default="exit", help="out of memory: end, or try on"
    )
    parser.add_argument(
        "--on-term", choices=("exit", "ignore"), default="exit", help="what SIGTERM does"
    )
    parser.add_argument(
        "--list",
        choices=[one.name.lower() for one in Lists if one.name],
        default="compute",
        help="in which of NVML's process lists it appears",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
