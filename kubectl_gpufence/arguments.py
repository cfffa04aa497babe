"""
What can be typed: verbs, options, and examples of each.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from kubectl_gpufence.options import (
    PROGRAM,
    add_scope,
    add_verb,
    name,
    node_name,
    pod_name,
    seconds,
)
from kubectl_gpufence.scale_call import add_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

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

The suggested limit is the peak and 15 %, turned into a limit by the rule that webhook and agents
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
        prog=PROGRAM,
        description="Declared, injected and measured GPU memory, side by side.",
        epilog=_ALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    top = add_verb(verbs, "top", "who holds how much GPU memory", _TOP)
    top.add_argument("what", nargs="?", choices=("pods", "nodes", "cards"), default="pods")
    add_scope(top)
    top.add_argument("--node", type=node_name, metavar="NODE", help="only on this node")
    top.add_argument("-o", "--output", choices=("table", "wide", "json"), default="table")
    top.add_argument("-w", "--watch", action="store_true", help="again and again, until Ctrl-C")
    top.add_argument(
        "--interval", type=seconds, default=2.0, metavar="TIME", help="between looks (2s)"
    )

    explain = add_verb(verbs, "explain", "the whole story of one pod", _EXPLAIN)
    explain.add_argument("pod", metavar="POD", type=pod_name)
    explain.add_argument("-n", "--namespace", type=name, metavar="NAMESPACE")

    report = add_verb(verbs, "report", "limits, peaks and suggestions by owner", _REPORT)
    add_scope(report)
    report.add_argument("-o", "--output", choices=("table", "json", "csv"), default="table")

    doctor = add_verb(verbs, "doctor", "check the installation", _DOCTOR)
    doctor.add_argument("-o", "--output", choices=("table", "json"), default="table")

    inspect = add_verb(verbs, "inspect", "what the agent of one node sees", _INSPECT)
    inspect.add_argument("node", metavar="NODE", type=node_name)
    inspect.add_argument("-o", "--output", choices=("table", "json"), default="table")

    add_scale(verbs)

    call = parser.parse_args(arguments)
    call.namespace = getattr(call, "namespace", None) or ""
    call.node = getattr(call, "node", None) or ""
    if call.verb == "top" and call.watch and call.output == "json":
        top.error("--watch shows tables; ask for -o json once, as often as you like")
    return call
