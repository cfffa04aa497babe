"""What a tick makes of work: state, pages and conditions."""

import pytest

from agent.concerns.activity.model import Activity, ActivityMemory, PodTrack
from agent.metrics import page
from agent.snapshot_view import snapshot_of
from gpufence import names
from gpufence.quantity import GIB
from gpufence.snapshot import ActivityRow, PodActivityRow
from tests.support.agent.builders import pod
from tests.support.agent.node import ABOUT, ConcernedNode

AT = "2026-01-02T03:05:06Z"
TICKS = 70


def node_at_work() -> ConcernedNode:
    """Return a node with one pod that works and one that waits, after more than a minute."""
    node = ConcernedNode()
    node.add(pod("works"), GIB, 1)
    node.add(pod("waits"), GIB, 2)
    node.cards.workers[0] = {1}
    node.tick(TICKS)
    return node


def rows(node: ConcernedNode, later: float = 0.0) -> dict[str, ActivityRow | None]:
    state = node.loop.state
    now = state.at + later
    current = state.is_current(now, ABOUT.gap_seconds)
    more = node.concerns.rows(now, current=current)
    snapshot = snapshot_of(state, ABOUT, now, AT, more)
    return {item.name: use.activity for item in snapshot.pods for use in item.uses}


def whole(node: ConcernedNode, later: float = 0.0) -> dict[str, PodActivityRow | None]:
    state = node.loop.state
    now = state.at + later
    current = state.is_current(now, ABOUT.gap_seconds)
    more = node.concerns.rows(now, current=current)
    snapshot = snapshot_of(state, ABOUT, now, AT, more)
    return {item.name: item.activity for item in snapshot.pods}


def test_the_snapshot_tells_who_is_idle() -> None:
    """A pod that works has been idle for no time, one that waits since the first look at it."""
    known = rows(node_at_work())

    assert ActivityRow("busy", 0.0, "Busy") == known["works"]
    assert ActivityRow("idle", TICKS - 1.0, "NoKernels") == known["waits"]


def test_a_look_that_is_too_old_tells_nothing() -> None:
    """When looks stop, nobody is idle any more."""
    known = rows(node_at_work(), later=ABOUT.gap_seconds + 1)

    assert {"unknown"} == {row.state for row in known.values() if row}


def test_the_snapshot_tells_of_each_pod_as_a_whole() -> None:
    """A pod's row says what it does on all cards together, and which part of the last minute."""
    node = node_at_work()
    node.claim(pod("claims", claims=True))
    node.tick(3)
    known = whole(node)

    assert PodActivityRow("busy", 0.0, "Busy", "", 1.0) == known["works"]
    assert PodActivityRow("idle", TICKS + 2.0, "NoKernels", "", 0.0) == known["waits"]
    assert PodActivityRow("idle", 2.0, "NoKernels", "", 0.0) == known["claims"]
    assert {"unknown"} == {row.state for row in whole(node, later=5).values() if row}


def test_metrics_tell_who_is_idle() -> None:
    """Both figures have a line for who is known, and none for who is not."""
    node = node_at_work()
    node.add(pod("new"), GIB, 3)
    node.tick()
    state = node.loop.state
    more = node.concerns.families(state.last, state.at)
    lines = [
        line.split('pod="')[1].replace('",card="GPU-0",node="gpu-1"}', "")
        for line in page(state, ABOUT, state.at, more).splitlines()
        if line.startswith(("gpufence_pod_gpu_idle", "gpufence_pod_gpu_busy"))
    ]

    assert ["waits 70", "works 0", "waits 0", "works 70"] == lines


def test_pods_say_it() -> None:
    """The one that works says so at once, the one that waits after a minute."""
    node = node_at_work()
    told = [(item.name, item.status) for item in node.api.said if item.kind == names.GPU_IDLE]

    assert ("works", "False") == told[0]
    assert {("works", "False"), ("waits", "True")} == set(told)


def test_a_bug_in_measuring_evicts_nobody_and_makes_nobody_idle() -> None:
    """A tick that fails keeps the state of the one before, which is soon too old to be shown."""
    node = node_at_work()
    node.cards.error = RuntimeError("bug")
    node.tick()

    assert 1 == node.loop.state.counts.failed
    assert Activity.IDLE in {track.activity for track in node.activity.memory.tracks.values()}
    assert {"unknown"} == {row.state for row in rows(node, later=5).values() if row}


def test_a_bug_in_it_harms_no_fence() -> None:
    """Where it cannot be found out who is busy, everybody is unknown, and the tick goes on."""
    node = node_at_work()
    node.processes.error = RuntimeError("bug")
    node.tick()

    assert 0 == node.loop.state.counts.failed
    assert {"unknown"} == {row.state for row in rows(node).values() if row}


def test_the_kernel_is_asked_about_new_answers_alone() -> None:
    """Between two answers about a card nobody's CPU time is read."""
    node = node_at_work()
    node.cards.workers.clear()
    node.tick()
    before = len(node.processes.cpu_asked)
    node.tick(3)

    assert before == len(node.processes.cpu_asked)


@pytest.mark.parametrize(
    ("activity", "held", "expected"),
    [
        (Activity.IDLE, (), ["7.5"]),
        (Activity.BUSY, (), ["0"]),
        (Activity.UNKNOWN, (), []),
        (Activity.IDLE, ("GPU-0",), []),
    ],
)
def test_a_pod_without_memory_has_a_line_without_a_card(
    activity: Activity, held: tuple[str, ...], expected: list[str]
) -> None:
    """
    A pod that was given a GPU and holds no memory has a line, unless nobody knows what it does.
    """
    node = ConcernedNode()
    node.claim(poor := pod("poor"))
    node.tick()
    state = node.loop.state
    track = PodTrack(activity, idle_since=state.at - 7.5, held=frozenset(held))
    node.activity.memory = ActivityMemory(pods={poor.uid: track})
    text = page(state, ABOUT, state.at, node.concerns.families(state.last, state.at))
    labels = f'{{namespace="{poor.namespace}",pod="poor",card="",node="gpu-1"}}'
    start = f"gpufence_pod_gpu_idle_seconds{labels}"
    shown = [line for line in text.splitlines() if line.startswith(start)]

    assert expected == [line.rpartition(" ")[2] for line in shown]
