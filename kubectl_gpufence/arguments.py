"""
What can be typed: verbs, options, and examples of each.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = "kubectl gpufence"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FOREVER = 86_400.0

_TOP = """\
examples:
  kubectl gpufence top                        pods of the current namespace, the worst first
  kubectl gpufence top pods -A -o wide        of all namespaces, with modes, owners and card UUIDs
  kubectl gpufence top cards --node gpu-1     the cards of one node
  kubectl gpufence top nodes --watch          every node, again and again

columns of pods:
  LIMIT    what the pod may hold on each card
  TOLD     what its frameworks were told they may allocate, all containers together; in
           parentheses where the namespace is in mode observe and nothing was set
  USED     what its processes hold on the card; "?" is unknown and never zero
  VERDICT  the agent's: since when the pod is over, and when it is due
"""
_EXPLAIN = """\
examples:
  kubectl gpufence explain trainer-0          of the current namespace
  kubectl gpufence explain -n team-a pod/trainer-0
"""
_REPORT = """\
examples:
  kubectl gpufence report -A                  every owner of GPU pods since the agents started
  kubectl gpufence report -n team-a -o csv > report.csv

The suggested limit is the peak and a tenth, turned into a limit by the rule that webhook and agents
share. It knows only the time since the agents started. A framework that takes all it is told to at
its start shows its cap, not its need: set gpufence.io/growth in mode observe to see that.
"""
_DOCTOR = """\
examples:
  kubectl gpufence doctor                     every check, with a remedy for what is wrong
  kubectl gpufence doctor -o json | jq '.checks[] | select(.level == "wrong")'

exit code: 0 well, or worth a look at most; 1 something is wrong
"""
_INSPECT = """\
examples:
  kubectl gpufence inspect gpu-1              cards, pods and processes of one node
  kubectl gpufence inspect gpu-1 -o json      its agent's snapshot as it is
"""
_ALL = """\
examples:
  kubectl gpufence top -A
  kubectl gpufence explain trainer-0
  kubectl gpufence doctor

What is measured comes from the agents, through the API server's pod proxy: for that you need get on
pods/proxy in gpufence-system. Without it you still see what was declared and injected.
"""


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
    """
    Read a call; argparse ends the program with 2 where it cannot be read.
    """
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Declared, injected and measured GPU memory, side by side.",
        epilog=_ALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    top = _verb(verbs, "top", "who holds how much GPU memory", _TOP)
    top.add_argument("what", nargs="?", choices=("pods", "nodes", "cards"), default="pods")
    _scope(top)
    top.add_argument("--node", type=_node_name, metavar="NODE", help="only on this node")
    top.add_argument("-o", "--output", choices=("table", "wide", "json"), default="table")
    top.add_argument("-w", "--watch", action="store_true", help="again and again, until Ctrl-C")
    top.add_argument(
        "--interval", type=seconds, default=2.0, metavar="TIME", help="between looks (2s)"
    )

    explain = _verb(verbs, "explain", "the whole story of one pod", _EXPLAIN)
    explain.add_argument("pod", metavar="POD", type=_pod_name)
    explain.add_argument("-n", "--namespace", type=_name, metavar="NAMESPACE")

    report = _verb(verbs, "report", "limits, peaks and suggestions by owner", _REPORT)
    _scope(report)
    report.add_argument("-o", "--output", choices=("table", "json", "csv"), default="table")

    doctor = _verb(verbs, "doctor", "check the installation", _DOCTOR)
    doctor.add_argument("-o", "--output", choices=("table", "json"), default="table")

    inspect = _verb(verbs, "inspect", "what the agent of one node sees", _INSPECT)
    inspect.add_argument("node", metavar="NODE", type=_node_name)
    inspect.add_argument("-o", "--output", choices=("table", "json"), default="table")

    call = parser.parse_args(arguments)
    call.namespace = getattr(call, "namespace", None) or ""
    call.node = getattr(call, "node", None) or ""
    if call.verb == "top" and call.watch and call.output == "json":
        top.error("--watch shows tables; ask for -o json once, as often as you like")
    return call


def seconds(text: str) -> float:
    """
    Read a time as kubectl writes it: 5s, 1m30s, 500ms, or a bare number of seconds.
    """
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if not re.fullmatch(f"(?:{_DURATION.pattern})+", text, re.ASCII):
        raise argparse.ArgumentTypeError(f'"{text}" is no time; write one such as 5s or 1m30s')
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def patience(text: str) -> float:
    """
    Read a timeout; zero means none, as for kubectl.
    """
    return min(seconds(text) or _FOREVER, _FOREVER)


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        prog=f"{_PROGRAM} {name}",
    )
    _common(parser)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="instead of KUBECONFIG")
    parser.add_argument("--context", metavar="NAME", help="instead of the current context")
    parser.add_argument(
        "--request-timeout",
        type=patience,
        default=10.0,
        metavar="TIME",
        help="for each request, such as 5s or 1m (10s); 0 waits as long as it takes",
    )


def _scope(parser: argparse.ArgumentParser) -> None:
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument(
        "-n",
        "--namespace",
        type=_name,
        metavar="NAMESPACE",
        help="instead of the context's",
    )
    scope.add_argument("-A", "--all-namespaces", action="store_true")


def _pod_name(text: str) -> str:
    for prefix in ("pod/", "pods/"):
        text = text.removeprefix(prefix)
    return _name(text)


def _node_name(text: str) -> str:
    for prefix in ("node/", "nodes/"):
        text = text.removeprefix(prefix)
    return _name(text)


def _name(text: str) -> str:
    if re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text, re.ASCII):
        return text
    raise argparse.ArgumentTypeError(f'"{text}" is no name of an object')
