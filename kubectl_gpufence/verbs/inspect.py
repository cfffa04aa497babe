"""`inspect NODE`: what one agent sees, as tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence.text import duration
from kube import ForbiddenError, NotFoundError, core
from kubectl_gpufence.arguments import add_output, node_name
from kubectl_gpufence.card_lines import CARD_FIELDS, card_lines
from kubectl_gpufence.cluster_view import ClusterAnswers, by_node, card_of, is_stale
from kubectl_gpufence.pod_lines import (
    MAY_BORROW,
    borrowed_by,
    card_index,
    held_on_card,
    idle_for,
    pod_line,
    requested_by,
)
from kubectl_gpufence.reader import MissingError
from kubectl_gpufence.verdicts import state_text, verdict
from kubectl_gpufence.view import (
    NOT_THERE,
    UNKNOWN,
    Cell,
    Field,
    Tone,
    allowed,
    chapter,
    columns_of,
    held,
    table,
    wrapped,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from gpufence.snapshot import PodRow, ProcessRow, Snapshot
    from kubectl_gpufence.cluster_view import NodeAgent
    from kubectl_gpufence.output import Output
    from kubectl_gpufence.pod_lines import PodLine
    from kubectl_gpufence.reader import ClusterReader
    from kubectl_gpufence.view import Display

EXAMPLES: Final = """\
examples:
  kubectl gpufence inspect gpu-1              cards, pods and processes of one node
  kubectl gpufence inspect gpu-1 -o json      its agent's snapshot as it is
"""


class ListedProcess(NamedTuple):
    """A process on a card and whose it is."""

    card: str
    process: ProcessRow
    whose: Cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", type=node_name)
    add_output(parser, "table", "json")


def run(call: argparse.Namespace, reader: ClusterReader, output: Output) -> int:
    """
    Show a node's snapshot.

    Raises:
        MissingError: there is no such node, no agent on it, or none that answers.
    """
    agents = reader.agent_pods(call.node)
    if agents.hidden:
        raise MissingError(agents.note)
    agent = by_node(reader.agents(agents.pods)).get(call.node)
    if agent is None:
        raise MissingError(_no_agent(call.node, reader))
    if agent.snapshot is None:
        raise MissingError(f"agent {agent.pod} on node {call.node}: {agent.trouble}")
    if call.output == "json":
        output.json(json.loads(agent.text))
    else:
        output.lines(inspection(agent, agent.snapshot, output.display))
    return 0


def inspection(agent: NodeAgent, snapshot: Snapshot, display: Display) -> list[str]:
    """Show everything in an agent's snapshot."""
    cards = card_lines(ClusterAnswers(agents={agent.node: agent}))
    tables = {
        "CARDS": table(columns_of(CARD_FIELDS), cards, display),
        "PODS": _pods_table(snapshot, display),
        "PROCESSES": _processes_table(snapshot, display),
    }
    lines = list(_head(agent, snapshot, display))
    for title, rows in tables.items():
        lines += chapter(title, rows if len(rows) > 1 else ["none"], display)
    return lines


def _no_agent(node: str, reader: ClusterReader) -> str:
    """Return whether it is the node that is missing or its agent."""
    try:
        reader.client.get(core("nodes", node))
    except NotFoundError:
        return f"there is no node {node}; `kubectl get nodes` lists those that are there"
    except ForbiddenError:
        return f"no agent runs on a node {node}"
    return f"no agent runs on node {node}; `kubectl gpufence doctor` says which nodes have one"


def _head(agent: NodeAgent, snapshot: Snapshot, display: Display) -> Iterator[str]:
    driver = f", driver {snapshot.driver}" if snapshot.driver else ""
    api = "answers" if snapshot.fresh else "is out of reach: no pod is evicted"
    title = f"node {snapshot.node}: agent {agent.pod} {snapshot.version}{driver}"
    yield from wrapped(title, "    ", display, first="")
    for text in (
        f"since {snapshot.started}, at {snapshot.at}, {_age(snapshot)}",
        f"highest mode allowed: {snapshot.highest or UNKNOWN}; the API server {api}",
    ):
        yield from wrapped(text, "    ", display, first="  ")
    for word, text in (("held back", snapshot.brake), ("trouble", snapshot.trouble)):
        if text:
            yield from wrapped(f"{word}: {text}", "    ", display, first="  ", tone=Tone.BAD)


def _age(snapshot: Snapshot) -> str:
    if snapshot.stale_seconds is None:
        return "nothing measured yet"
    age = duration(snapshot.stale_seconds)
    return f"stale: the last sample is {age} old" if is_stale(snapshot) else f"sample {age} old"


def _pods_table(snapshot: Snapshot, display: Display) -> list[str]:
    lines = [
        pod_line(
            snapshot.node, None, pod, use, snapshot, "terminating" if pod.terminating else "idle"
        )
        for pod in snapshot.pods
        for use in pod.uses or (None,)
    ]
    return table(_POD_FIELDS, lines, display)


def _processes_table(snapshot: Snapshot, display: Display) -> list[str]:
    rows = [
        *(
            ListedProcess(_index(snapshot, use.card), process, _of_pod(pod, process))
            for pod in snapshot.pods
            for use in pod.uses
            for process in use.processes
        ),
        *(
            ListedProcess(_index(snapshot, row.card), row.process, _of_nobody(row.process))
            for row in snapshot.nobody
        ),
    ]
    return table(_PROCESS_FIELDS, rows, display)


def _request(line: PodLine) -> str:
    return allowed(requested_by(line))


def _verdict(line: PodLine) -> Cell:
    if line.row is None or line.use is None or line.snapshot is None:
        return Cell(state_text(line.state), Tone.FAINT)
    return verdict(line.row, line.use, line.snapshot.brake)


def _of_pod(pod: PodRow, process: ProcessRow) -> Cell:
    return Cell(f"{pod.namespace}/{pod.name} {process.container}".strip())


def _of_nobody(process: ProcessRow) -> Cell:
    return Cell(f"nobody's: {process.command or 'unknown command'}", Tone.WARN)


def _index(snapshot: Snapshot, uuid: str) -> str:
    card = card_of(snapshot, uuid)
    return UNKNOWN if card is None else str(card.index)


_POD_FIELDS: Final[tuple[Field[PodLine], ...]] = (
    Field(title="POD", cell=lambda line: f"{line.namespace}/{line.name}", shrinks=True),
    Field(title="MODE", cell=lambda line: line.mode or NOT_THERE, spare=3),
    Field(title="CARD", cell=card_index, right=True, spare=4),
    Field(title="REQUEST", cell=_request, right=True, spare=6, some=MAY_BORROW),
    Field(title="LIMIT", cell=lambda line: allowed(line.limit_bytes), right=True, spare=5),
    Field(title="CAP", cell=lambda line: allowed(line.told_bytes), right=True, spare=1),
    Field(title="USED", cell=held_on_card, right=True),
    Field(title="BORROWED", cell=borrowed_by, right=True, some=MAY_BORROW),
    Field(title="IDLE", cell=idle_for, right=True, spare=2),
    Field(title="VERDICT", cell=_verdict),
)
_PROCESS_FIELDS: Final[tuple[Field[ListedProcess], ...]] = (
    Field(title="CARD", cell=lambda row: row.card, right=True),
    Field(title="PID", cell=lambda row: str(row.process.pid), right=True),
    Field(title="USED", cell=lambda row: held(row.process.used_bytes), right=True),
    Field(title="WHOSE", cell=lambda row: row.whose, shrinks=True),
)
