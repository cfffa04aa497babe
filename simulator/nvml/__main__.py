"""Make, show and change simulated cards from a shell: `python -m simulator nvml --help`."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpufence.errors import GpufenceError
from gpufence.quantity import MIB, read_bytes
from simulator.cuda.build import RUNTIMES
from simulator.cuda.build import environment as cuda_environment
from simulator.nvml.build import (
    CURRENT,
    LIBRARY_VARIABLE,
    VARIANTS,
    environment,
    library_path,
)
from simulator.nvml.faults import EVERY, Fault, NvmlCode
from simulator.nvml.layout import NO_LIMIT, FaultAction, Lists, Memacct
from simulator.nvml.state import DEFAULT_SEED, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simulator.nvml.card import SimulatedCard
    from simulator.nvml.processes import Use

    Verb = Callable[[argparse.Namespace], None]

EPILOG = """\
example:
  eval "$(python -m simulator nvml create --cards T4,2xA100-40 /tmp/cards)"
  python -m simulator workload --card 0 'hold 2Gi; after 10s grow 256Mi/s to 6Gi' &
  nvitop

variants of the library:
"""


def main(argv: Sequence[str]) -> int:
    """Do what the arguments say; anything wrong with them is one line and the exit code 1."""
    arguments = _parser().parse_args(argv)
    verb: Verb = arguments.verb
    try:
        verb(arguments)
    except GpufenceError as error:
        print(f"python -m simulator nvml: {error}", file=sys.stderr)
        return 1
    return 0


def _create(arguments: argparse.Namespace) -> None:
    State.create(arguments.state, arguments.cards, seed=arguments.seed)
    _env(arguments)


def _env(arguments: argparse.Namespace) -> None:
    State.open(arguments.state)
    state, variant, cuda = arguments.state, arguments.variant, arguments.cuda
    if cuda is None:
        variables = environment(state, variant)
    else:
        variables = cuda_environment(state, cuda=cuda, variant=variant)
    for name, value in variables.items():
        kept = f"${{{name}:+:${name}}}" if name == LIBRARY_VARIABLE else ""
        print(f"export {name}={shlex.quote(value)}{kept}")


def _show(arguments: argparse.Namespace) -> None:
    print(describe(State.open(arguments.state)))


def _put(arguments: argparse.Namespace) -> None:
    state = State.open(arguments.state)
    place = state.find(arguments.card)
    state.processes.put(
        place,
        arguments.pid,
        read_bytes(arguments.memory, "--memory"),
        lists=arguments.lists,
        kept=arguments.kept,
    )


def _fault(arguments: argparse.Namespace) -> None:
    state = State.open(arguments.state)
    card = None if arguments.card is None else state.find(arguments.card).card
    action = FaultAction[arguments.action.upper().replace("-", "_")]
    fault = Fault(
        action, arguments.function, card, arguments.argument, arguments.after, arguments.times
    )
    print(f"fault {state.faults.add(fault)}")


def _clear(arguments: argparse.Namespace) -> None:
    faults = State.open(arguments.state).faults
    if arguments.number is None:
        faults.clear()
    else:
        faults.remove(arguments.number)


def _memacct(arguments: argparse.Namespace) -> None:
    State.open(arguments.state).groups.memacct = Memacct[arguments.kind.upper()]


def _totals(arguments: argparse.Namespace) -> None:
    State.open(arguments.state).groups.totals_capped = arguments.kind == "capped"


def _limits(arguments: argparse.Namespace) -> None:
    for line in _limit_lines(State.open(arguments.state)):
        print(line)


def _build(_: argparse.Namespace) -> None:
    for variant in VARIANTS:
        print(f"{variant.name}: {library_path(variant.name)}", flush=True)


def _read_lists(text: str) -> Lists:
    lists = Lists(0)
    for name in text.split("+"):
        if name.upper() not in Lists.__members__:
            raise argparse.ArgumentTypeError(f"{name!r} is none of compute, graphics and mps")
        lists |= Lists[name.upper()]
    return lists


def _read_argument(text: str) -> int:
    if text.upper() in NvmlCode.__members__:
        return NvmlCode[text.upper()].value
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a code of NVML")
    return int(text)


def describe(state: State) -> str:
    """List cards, their instances and processes, the limits of groups, and the active faults."""
    return "\n".join([*_cards(state), *_limit_lines(state), *_faults(state)])


def _limit_lines(state: State) -> Iterator[str]:
    places = {place: index for index, place in enumerate(state.indices)}
    for limit in state.groups.limits():
        hard = "no limit" if limit.hard == NO_LIMIT else f"limit {_mib(limit.hard)}"
        gone = "" if Path(limit.group).is_dir() else ", which is gone"
        yield (
            f"card {places[limit.card]}: {hard}, {_mib(limit.soft)} reserved, {_mib(limit.used)}"
            f" counted for {limit.group}{gone}"
        )


def _cards(state: State) -> Iterator[str]:
    for index, place in enumerate(state.indices):
        card = state.cards[place]
        room = card.room
        yield (
            f"card {index}: {card.name}, {card.uuid}: {_mib(room.taken)} taken, "
            f"{_mib(room.reserved)} reserved, {_mib(room.free)} free of {_mib(room.total)}"
        )
        for instance in card.instances:
            number = instance.place.instance
            yield f"  instance {index}:{number}: {instance.profile}, {instance.uuid}"
        for use in card.uses:
            yield f"  {_use(card, use)}"


def _use(card: SimulatedCard, use: Use) -> str:
    who = f"PID {use.pid}" if use.pid else "a PID of another namespace"
    lists = "+".join(one.name.lower() for one in use.lists if one.name)
    parts = [f"{who}: {_mib(use.memory)}", lists]
    if use.managed:
        parts.append(f"{_mib(use.managed)} managed")
    if card.instances:
        parts.append(f"instance {use.place.instance}")
    return ", ".join(parts)


def _faults(state: State) -> Iterator[str]:
    for number, fault in state.faults.active():
        where = "every card" if fault.card is None else f"the card at place {fault.card}"
        when = f"after {fault.after} calls" if fault.after else "at once"
        how_long = f"{fault.times} times" if fault.times else "until removed"
        yield (
            f"fault {number}: {fault.action.name.lower()} {fault.argument} in {fault.function} "
            f"on {where}, {when}, {how_long}"
        )


def _mib(amount: int) -> str:
    return f"{amount // MIB} MiB"


def _parser() -> argparse.ArgumentParser:
    width = max(len(variant.name) for variant in VARIANTS)
    variants = "\n".join(f"  {one.name:<{width}}  {one.about}" for one in VARIANTS)
    parser = argparse.ArgumentParser(
        prog="python -m simulator nvml",
        description="Simulated graphics cards for every client of NVIDIA's management library.",
        epilog=EPILOG + variants,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(required=True, metavar="verb")
    create = _verb(verbs, "create", _create, "make a machine and print what clients need")
    create.add_argument("--cards", default="T4", help="such as T4,2xA100-40:3g.20gb+1g.5gb")
    create.add_argument("--seed", default=DEFAULT_SEED, help="other seeds give other UUIDs")
    env = _verb(verbs, "env", _env, "print what clients need")
    for one in (create, env):
        names = [variant.name for variant in VARIANTS]
        one.add_argument("--variant", default=CURRENT, choices=names, help="which driver's library")
        one.add_argument(
            "--cuda",
            type=int,
            choices=RUNTIMES,
            help="also a CUDA driver, and this major's runtime",
        )
    _verb(verbs, "show", _show, "list cards, processes, limits and faults")
    put = _verb(verbs, "put", _put, "list any PID on a card")
    put.add_argument("--card", required=True, help="index, index:instance or UUID")
    put.add_argument("--pid", type=int, required=True)
    put.add_argument("--memory", required=True, help="such as 2Gi")
    put.add_argument(
        "--lists", type=_read_lists, default="compute", help="compute, graphics, mps; joined by +"
    )
    put.add_argument("--kept", action="store_true", help="list it whether or not it lives")
    _add_fault(verbs)
    clear = _verb(verbs, "clear", _clear, "remove one fault or all")
    clear.add_argument("number", type=int, nargs="?")
    memacct = _verb(verbs, "memacct", _memacct, "load the driver anew, to count by control group")
    memacct.add_argument("kind", choices=[one.name.lower() for one in Memacct])
    totals = _verb(verbs, "totals", _totals, "say whether a limit changes a device's size, too")
    totals.add_argument("kind", choices=("capped", "uncapped"))
    _verb(verbs, "limits", _limits, "list what control groups may have of a card")
    build = verbs.add_parser("build", help="compile every variant of the library")
    build.set_defaults(verb=_build)
    return parser


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, verb: Verb, about: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=about, description=about)
    parser.add_argument("state", type=Path, help="the state file")
    parser.set_defaults(verb=verb)
    return parser


def _add_fault(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fault = _verb(verbs, "fault", _fault, "let something go wrong")
    actions = [action.name.lower().replace("_", "-") for action in FaultAction]
    fault.add_argument("action", choices=actions)
    fault.add_argument(
        "argument",
        nargs="?",
        type=_read_argument,
        default=0,
        help="a number or, for return, a code such as GPU_IS_LOST",
    )
    fault.add_argument("--function", default=EVERY, help="such as nvmlDeviceGetMemoryInfo")
    fault.add_argument("--card", help="index or UUID; every card if left out")
    fault.add_argument("--after", type=int, default=0, help="let so many calls pass first")
    fault.add_argument("--times", type=int, default=0, help="stop after so many; 0 is never")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
