"""
`kubectl inspect gpushare`, its own program, asked over HTTP; and gpushare's program beside it.
"""

import io
import os
import subprocess
from pathlib import Path

import pytest

from gpufence.quantity import GIB, MIB
from gpufence.snapshot import write_snapshot
from kubectl_gpufence import gpushare
from kubectl_gpufence.output import Output
from kubectl_gpufence.view import Display
from tests.http.kube.builders import status
from tests.support.gpushare_cases import ABSENT, CLUSTERS, FOLDER, Cluster, golden, serve
from tests.support.plugin import (
    SYSTEM,
    Desk,
    Said,
    agent_pod,
    card_row,
    listed,
    pod_row,
    snapshot,
    use_row,
)
from tests.support.servers import reply

# A build of cmd/inspect of gpushare-device-plugin; CONTRIBUTING.md says how one is made.
UPSTREAM = os.environ.get("GPUSHARE_INSPECT", "GPUSHARE_INSPECT names no program")
WRITE = os.environ.get("GPUFENCE_GOLDEN") == "write"
AGENT_1 = f"{SYSTEM}/agent-1:8080/proxy/v1/snapshot"
# Gpushare's program prints in the order of Go's maps, another one each time.
_RUNS = 60


@pytest.fixture
def shared(desk: Desk) -> Desk:
    """Return a cluster of one node and two pods, its agent among the others."""
    serve(desk.server, CLUSTERS["one-card"])
    desk.get(SYSTEM, listed(agent_pod("agent-1"), agent_pod("far", "gpu-9")))
    held = use_row(2 * GIB + 1)
    state = snapshot(
        pod_row(held, uid="team-a-trainer"),
        cards=(card_row(used_bytes=11611 * MIB),),
    )
    desk.get(AGENT_1, reply(write_snapshot(state).encode()))
    return desk


@pytest.mark.parametrize("by_pod", [False, True])
@pytest.mark.parametrize("name", CLUSTERS)
def test_the_program_prints_what_gpushares_prints(desk: Desk, name: str, *, by_pod: bool) -> None:
    """Nodes and pods are read and chosen as there, and each byte is its own program's."""
    said = _run(desk, CLUSTERS[name], *(["-d"] if by_pod else []))

    assert (0, golden(name, details=by_pod).read_text(), "") == (said.code, said.out, said.err)


def test_no_file_is_left_over() -> None:
    """Each file belongs to a cluster; never write these from what ours prints."""
    expected = {golden(name, details=by_pod) for name in CLUSTERS for by_pod in (False, True)}

    assert expected == set(FOLDER.glob("*.txt"))


def test_a_node_that_is_not_there_fails_as_there(desk: Desk) -> None:
    """The API server's words go to standard output, without an end of the line."""
    said = _run(desk, ABSENT)

    assert (1, 'Failed due to nodes "gpu-9" not found', "") == (said.code, said.out, said.err)


@pytest.mark.parametrize(("asked", "where"), [("", ""), ("gpu-1", " in node gpu-1")])
def test_pods_that_cannot_be_listed_fail_as_there(desk: Desk, asked: str, where: str) -> None:
    """Why they cannot is not told there, so it is not told here."""
    cluster = Cluster(CLUSTERS["one-card"].nodes, (), asked)
    serve(desk.server, cluster)
    desk.get("/api/v1/pods", reply(status(403, "Forbidden", "not yours"), 403))

    said = _said(desk, cluster)

    assert (1, f"Failed due to failed to get Pods{where}") == (said.code, said.out)


def test_what_is_held_stands_beside_what_was_booked(shared: Desk) -> None:
    """The column that gpushare's program never had, in the cluster's unit and rounded up."""
    said = _said(shared, CLUSTERS["one-card"], "--used")

    assert [
        "NAME   IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)  Used(GiB)",
        "gpu-1  10.0.0.1   6/15                   6/15             11.4",
    ] == said.out.splitlines()[:2]


def test_what_each_pod_holds_stands_beside_it(shared: Desk) -> None:
    """A pod that its agent does not list holds nothing."""
    said = _said(shared, CLUSTERS["one-card"], "-d", "--used")

    assert [
        "NAME         NAMESPACE  GPU0(Allocated)  Used(GiB)  ",
        "trainer      team-a     3                2.1        ",
        "b            team-a     3                0.0        ",
        "Allocated :  6 (40%)    ",
        "Used :       11.4       ",
        "Total :      15         ",
    ] == said.out.splitlines()[4:10]


def test_whole_mebibytes_where_gpushare_counts_them(desk: Desk) -> None:
    """A cluster in MiB, or one without cards, has what is held in MiB."""
    cluster = CLUSTERS["mib"]
    serve(desk.server, cluster)
    name = cluster.nodes[0]["metadata"]["name"]
    desk.get(SYSTEM, listed(agent_pod("agent-1", name)))
    state = snapshot(node=name, cards=(card_row(used_bytes=5 * MIB + 1),))
    desk.get(AGENT_1, reply(write_snapshot(state).encode()))

    said = _said(desk, cluster, "--used")

    assert ["Used(MiB)", "6", "?", "?"] == [line.split()[-1] for line in said.out.splitlines()[:4]]


@pytest.mark.parametrize("by_pod", [False, True])
def test_what_nobody_measured_is_unknown(shared: Desk, *, by_pod: bool) -> None:
    """A stale sample is a question mark, never zero."""
    state = snapshot(pod_row(uid="team-a-trainer"), stale_seconds=60.0)
    shared.get(AGENT_1, reply(write_snapshot(state).encode()))

    said = _said(shared, CLUSTERS["one-card"], "--used", *(["-d"] if by_pod else []))

    assert "?" == said.out.splitlines()[5 if by_pod else 1].split()[-1]


def test_agents_that_do_not_answer_are_named(shared: Desk) -> None:
    """The note goes aside, so that a pipe carries the table alone."""
    shared.get(SYSTEM, listed(agent_pod("agent-1", ready="False")))

    said = _said(shared, CLUSTERS["one-card"], "--used")

    assert "note: 1 agent (gpu-1): its pod is not ready\n" == said.err


def test_without_agents_a_note_says_so(shared: Desk) -> None:
    """The rest of the table is there all the same."""
    shared.get(SYSTEM, listed())

    said = _said(shared, CLUSTERS["one-card"], "--used")

    assert said.err.startswith("note: no agent runs in this cluster")


@pytest.mark.gpushare
@pytest.mark.parametrize("by_pod", [False, True])
@pytest.mark.parametrize("name", CLUSTERS)
def test_gpushares_own_program_prints_the_golden_files(
    desk: Desk, name: str, *, by_pod: bool, tmp_path: Path
) -> None:
    """What it prints in one of the orders that it chooses is what is kept, and what ours prints."""
    cluster, options = CLUSTERS[name], ["-d"] if by_pod else []
    ours = _run(desk, cluster, *options).out
    printed: set[str] = set()
    for _ in range(_RUNS):
        printed.add(_upstream(desk, cluster, options, tmp_path).out)
        if ours in printed:
            break
    if WRITE and ours in printed:
        golden(name, details=by_pod).write_text(ours)

    assert ours in printed
    assert golden(name, details=by_pod).read_text() == ours


@pytest.mark.gpushare
def test_gpushares_own_program_fails_so(desk: Desk, tmp_path: Path) -> None:
    """A node that is not there is told in the same words, on the same place, with the same code."""
    ours = _run(desk, ABSENT)

    assert ours == _upstream(desk, ABSENT, [], tmp_path)


def _run(desk: Desk, cluster: Cluster, *options: str) -> Said:
    serve(desk.server, cluster)
    return _said(desk, cluster, *options)


def _said(desk: Desk, cluster: Cluster, *options: str) -> Said:
    out, err = io.StringIO(), io.StringIO()
    call = gpushare.parse([*options, *([cluster.asked] if cluster.asked else [])])
    code = gpushare.run(call, desk.environ, Output(out, err, Display(width=100)))
    return Said(code, out.getvalue(), err.getvalue())


def _upstream(desk: Desk, cluster: Cluster, options: list[str], logs: Path) -> Said:
    named = [cluster.asked] if cluster.asked else []
    done = subprocess.run(
        [UPSTREAM, f"-log_dir={logs}", *options, *named],
        env=desk.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)
