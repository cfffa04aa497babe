"""What can be typed: verbs, options, and examples of each."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from kubectl_gpufence.options import (
    PROGRAM,
    add_scope,
    add_verb,
    interval,
    name,
    node_name,
    pod_name,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOP = """\
examples:
  kubectl gpufence top                        pods of the current namespace, the worst first
  kubectl gpufence top pods -A -o wide        of all namespaces, with modes, owners and card UUIDs
  kubectl gpufence top cards --node gpu-1     the cards of one node
  kubectl gpufence top nodes --watch          every node, live; h shows the keys

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
  kubectl gpufence explain trainer-0 -o json | jq '.injected.containers'
"""
_RECOMMEND = """\
examples:
  kubectl gpufence recommend -A               every model: peak, target, and how far to trust it
  kubectl gpufence recommend -A -o html > memory.html    a page with each model's days, and the
                                              cards that would be free
  kubectl gpufence recommend -n team-a -o patch > patches.yaml
  kubectl gpufence recommend -n team-a -o kustomize > gpu-memory/kustomization.yaml

It reads the GPUMemoryProfiles, else what the agents remember of the last days. Nothing is applied:
patches say the targets in the words of each owner's own sharing system, for Git. At low confidence,
and while a model stands at its cap, there is no target.
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
_IDLE = """\
examples:
  kubectl gpufence idle                       who holds GPUs in vain, the most of it first
  kubectl gpufence idle -A -o wide            of all namespaces, with evidence and reasons

columns:
  IDLE       for how long all pods of the owner have done nothing; "?" is unknown, never idle
  HELD       the GPU memory its processes hold, and GIB-H how much of it for how long in vain
  RELEASE    when the controller takes its replicas; in parentheses where nothing is done at it
  WAITING    whose pods wait for just these GPUs
"""
_KEEP = """\
examples:
  kubectl gpufence keep deploy/worker --for 8h
  kubectl gpufence keep notebook/mine --until 2027-03-01T18:00:00Z
  kubectl gpufence keep worker-7d9f8b6c4d-x2x4k --for 1d      the owner of this pod
  kubectl gpufence keep deploy/worker --clear
"""
_WAKE = """\
examples:
  kubectl gpufence wake deploy/worker         back to the replicas it had
  kubectl gpufence wake deploy/worker --replicas 2
"""
_RELEASE = """\
examples:
  kubectl gpufence release -A --dry-run       what the controller would do, when, and why not
  kubectl gpufence release deploy/worker      at once, if agents call all its pods idle
"""
_DASHBOARD = """\
examples:
  kubectl gpufence dashboard                  a page of the current namespace, live
  kubectl gpufence dashboard -A --no-open     of all namespaces; you open the address yourself
  kubectl gpufence dashboard --port 8765      where a tunnel leads: ssh -L 8765:127.0.0.1:8765 ...

The page is served on this machine's loopback address alone, to whoever knows the whole address with
its token, and shows what you may see. It stays until Ctrl-C.
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
    """Read a call; argparse ends the program with 2 where it cannot be read."""
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
    top.add_argument(
        "-w", "--watch", action="store_true", help="live, with keys to sort and filter"
    )
    top.add_argument(
        "--interval", type=interval, default=2.0, metavar="TIME", help="between looks (2s)"
    )

    explain = add_verb(verbs, "explain", "the whole story of one pod", _EXPLAIN)
    explain.add_argument("pod", metavar="POD", type=pod_name)
    explain.add_argument("-n", "--namespace", type=name, metavar="NAMESPACE")
    explain.add_argument("-o", "--output", choices=("text", "json"), default="text")

    _add_recommend(verbs)

    doctor = add_verb(verbs, "doctor", "check the installation", _DOCTOR)
    doctor.add_argument("-o", "--output", choices=("table", "json"), default="table")

    inspect = add_verb(verbs, "inspect", "what the agent of one node sees", _INSPECT)
    inspect.add_argument("node", metavar="NODE", type=node_name)
    inspect.add_argument("-o", "--output", choices=("table", "json"), default="table")

    _add_dashboard(verbs)
    _add_idle(verbs)

    call = parser.parse_args(arguments)
    call.namespace = getattr(call, "namespace", None) or ""
    call.node = getattr(call, "node", None) or ""
    if call.verb == "top" and call.watch and call.output == "json":
        top.error("--watch shows tables; ask for -o json once, as often as you like")
    if call.verb == "release" and not (call.owner or call.dry_run):
        parser.error("release: name one owner, or see with --dry-run what would be done")
    return call


def _add_recommend(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add what is proposed of what was measured."""
    recommend = add_verb(verbs, "recommend", "how much each model needs, as limits", _RECOMMEND)
    add_scope(recommend)
    forms = ("table", "json", "csv", "patch", "kustomize", "html")
    recommend.add_argument("-o", "--output", choices=forms, default="table")


def _add_dashboard(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    dashboard = add_verb(verbs, "dashboard", "what top shows, live, in a browser", _DASHBOARD)
    add_scope(dashboard)
    dashboard.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="on 127.0.0.1 (one that is free)"
    )
    dashboard.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="start a browser (by default where there is a screen)",
    )
    dashboard.add_argument(
        "--interval", type=interval, default=2.0, metavar="TIME", help="between looks (2s)"
    )


def _add_idle(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add what there is to see and to do about GPUs that nobody uses."""
    idle = add_verb(verbs, "idle", "who holds GPUs that nobody uses", _IDLE)
    add_scope(idle)
    idle.add_argument("-o", "--output", choices=("table", "wide", "json"), default="table")

    keep = add_verb(verbs, "keep", "no release of an owner before a moment", _KEEP)
    _add_owner(keep)
    until = keep.add_mutually_exclusive_group(required=True)
    until.add_argument("--for", dest="length", metavar="TIME", help="from now on: 8h, 2d")
    until.add_argument("--until", metavar="MOMENT", help="RFC 3339: 2027-03-01T18:00:00Z")
    until.add_argument("--clear", action="store_true", help="no longer")
    keep.set_defaults(module="idle.keep")

    wake = add_verb(verbs, "wake", "bring back what was released", _WAKE)
    _add_owner(wake)
    wake.add_argument("--replicas", type=_replicas, metavar="N", help="instead of what it had")
    wake.set_defaults(module="idle.wake")

    release = add_verb(verbs, "release", "take the replicas of an idle owner", _RELEASE)
    release.add_argument("owner", metavar="OWNER", type=_owner, nargs="?")
    add_scope(release)
    release.add_argument("--dry-run", action="store_true", help="only show what would be done")
    release.add_argument("--even-if-busy", action="store_true", help="whatever its pods do")
    release.add_argument("-o", "--output", choices=("table", "json"), default="table")
    release.set_defaults(module="idle.release")


def _add_owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "owner", metavar="OWNER", type=_owner, help="deploy/NAME, sts/NAME, ..., or a pod's name"
    )
    parser.add_argument("-n", "--namespace", type=name, metavar="NAMESPACE")


def _owner(text: str) -> str:
    kind, separator, of_kind = text.rpartition("/")
    name(of_kind)
    if separator:
        name(kind.lower())
    return text


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:6]) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f'"{text}" is no port; write one from 1 to 65535')


def _replicas(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:9]) > 0:
        return int(text[:9])
    raise argparse.ArgumentTypeError(f'"{text}" is no number of replicas; write 1 or more')
