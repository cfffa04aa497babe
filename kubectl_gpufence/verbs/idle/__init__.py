"""`idle`: who holds GPUs that nobody uses, for how long, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubectl_gpufence.arguments import add_output, add_scope
from kubectl_gpufence.verbs.idle.lines import idle_lines, idle_listing, waiting_note
from kubectl_gpufence.verbs.idle.owners import gather

if TYPE_CHECKING:
    import argparse

    from kubectl_gpufence.output import Output
    from kubectl_gpufence.reader import ClusterReader

EXAMPLES: Final = """\
examples:
  kubectl gpufence idle                       owners of unused GPUs, the most memory first
  kubectl gpufence idle -A -o wide            of all namespaces, with evidence and reasons

columns:
  IDLE       for how long all pods of the owner have done nothing; "?" is unknown, never idle
  HELD       the GPU memory its processes hold; GIB-H that times the idle time
  RELEASE    when the controller scales it to zero; in parentheses if the namespace only reports
  WAITING    pods that wait for exactly these GPUs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_scope(parser)
    add_output(parser, "table", "wide", "json")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    cluster = gather(reader, call.namespace)
    lines = idle_lines(cluster, call.namespace)
    where = f"in namespace {call.namespace}" if call.namespace else "in any namespace"
    nothing = f"no pod {where} has to do with GPUs"
    listing = idle_listing(lines, call.namespace, nothing, cluster.notes)
    waiting = waiting_note(lines)
    output.show(listing._replace(asides=[waiting] if waiting else ()), call.output)
    return 0
