"""
The verbs: each row is a folder or module in here, which says what can be typed, with examples, and
what is done then.

This list is all that knows them: taking a verb's row and its folder away takes it out.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from gpufence.arguments import Parser
from kubectl_gpufence.arguments import add_common

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

_PROGRAM: Final = "kubectl gpufence"
_EXAMPLES: Final = """\
examples:
  kubectl gpufence top -A
  kubectl gpufence explain trainer-0
  kubectl gpufence doctor

What is measured comes from the agents, through the API server's pod proxy: for that you need get on
pods/proxy where gpufence is. Without it you still see what was declared and injected.
"""


class VerbModule(Protocol):
    """
    What a verb's module has. A call that argparse takes and that makes no sense all the same is
    refused by a default of its parser, `refusal`, which returns why.
    """

    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, call: argparse.Namespace, reader: ClusterReader, output: Output) -> int: ...


class Verb(NamedTuple):
    """
    A verb, what --help says of it, and its module where that is not called as the verb is. Only the
    module of the verb that is called is loaded: that takes ten times as long as --help.
    """

    name: str
    help: str
    place: str = ""


VERBS: Final = (
    Verb("top", "how much GPU memory each pod holds"),
    Verb("explain", "why a pod has its limits, what it holds, and what to do"),
    Verb("why", "how a pod was evicted, failed or was rejected"),
    Verb("recommend", "how much memory each model needs, and the limit to request"),
    Verb("doctor", "whether everything is installed and works"),
    Verb("inspect", "everything that the agent of a node knows"),
    Verb("verify", "whether a node's driver does what gpufence assumes"),
    Verb("dashboard", "top as a live page in the browser"),
    Verb("idle", "which owners hold GPUs without using them"),
    Verb("keep", "do not scale an idle owner to zero for a while", "idle.keep"),
    Verb("wake", "scale a released owner up again", "idle.wake"),
    Verb("release", "scale an idle owner to zero now", "idle.release"),
)


class _Version(argparse.Action):
    """
    Looks the version up only when somebody asks: it takes longer than all else before the cluster.
    """

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 (see above)

        try:
            installed = version("gpufence")
        except PackageNotFoundError:
            installed = "(not installed, run from its sources)"
        sys.stdout.write(f"gpufence {installed}\n")
        parser.exit()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a call; argparse ends the program with 2 where it cannot be read."""
    parser = Parser(
        prog=_PROGRAM,
        description="Declared, injected and measured GPU memory, side by side.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    parsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    called = next((text for text in arguments if not text.startswith("-")), "")
    for verb in VERBS:
        added = parsers.add_parser(verb.name, help=verb.help, prog=f"{_PROGRAM} {verb.name}")
        if verb.name == called:
            _fill(added, verb)
            parser.set_defaults(parser=added)
    call, unknown = parser.parse_known_args(arguments)
    if unknown:
        call.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    call.namespace = getattr(call, "namespace", None) or ""
    call.node = getattr(call, "node", None) or ""
    if (refusal := getattr(call, "refusal", None)) and (why := refusal(call)):
        call.parser.error(why)
    return call


def parser_of(name: str) -> argparse.ArgumentParser | None:
    """Return what can be typed behind a verb; None for a word that is none."""
    for verb in VERBS:
        if verb.name == name:
            parser = Parser(prog=f"{_PROGRAM} {name}")
            _fill(parser, verb)
            return parser
    return None


def _fill(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """Load the verb that is called, and say what can be typed behind it."""
    module = cast("VerbModule", import_module(f"{__name__}.{verb.place or verb.name}"))
    parser.description = f"{verb.help[0].upper()}{verb.help[1:]}."
    parser.epilog = module.EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_common(parser)
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)
