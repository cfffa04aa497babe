"""What pods say of their activity, their busy shares, and what a tick makes of both."""

from dataclasses import replace

import pytest

from agent.concerns.activity.condition import NOTHING_SAID, conditions
from agent.concerns.activity.model import (
    Activity,
    ActivityMemory,
    ActivityPolicy,
    Evidence,
    PodTrack,
    Span,
)
from agent.concerns.activity.pods import covered
from agent.metrics import page
from agent.model.pod import PodCondition, pods_on_node
from agent.snapshot_view import snapshot_of
from gpufence import names
from gpufence.quantity import GIB
from gpufence.snapshot import ActivityRow, PodActivityRow, Snapshot
from tests.support.agent.builders import pod
from tests.support.agent.node import ABOUT, ConcernedNode
from tests.support.agent.watching import Watched

POLICY = ActivityPolicy()
UID = "uid-a"
NOW = 1000.0
CARD = frozenset({"GPU-0"})
IDLE = PodTrack(Activity.IDLE, Evidence.NOTHING, idle_since=NOW - 60.0, held=CARD)
BUSY = PodTrack(Activity.BUSY, Evidence.KERNELS, idle_since=NOW, held=CARD)
UNKNOWN = PodTrack(why="the driver cannot tell", held=CARD)


class Pods:
    """One pod, and an API server that shows what it was told after a while."""

    def __init__(self, shown: str = "") -> None:
        self.pod = pod("a", idle_said=shown)
        self.said = NOTHING_SAID

    def show(self, status: str) -> None:
        self.pod = replace(self.pod, idle_said=status)

    def told(self, track: PodTrack | None = None, now: float = NOW) -> list[PodCondition]:
        memory = ActivityMemory(pods={} if track is None else {UID: track})
        changes, self.said = conditions(pods_on_node([self.pod]), memory, self.said, POLICY, now)
        return changes

    def says(self, track: PodTrack | None = None, now: float = NOW) -> list[tuple[str, str]]:
        return [(str(i.status), i.reason) for i in self.told(track, now=now)]


@pytest.mark.parametrize(
    ("track", "expected"),
    [
        (BUSY, ("False", "Busy")),
        (BUSY._replace(evidence=Evidence.CPU), ("False", "CPUBusy")),
        (BUSY._replace(evidence=Evidence.LOADING), ("False", "Loading")),
        (IDLE, ("True", "NoKernels")),
        (UNKNOWN, ("Unknown", "NotMeasurable")),
    ],
)
def test_a_pod_says_what_it_does(track: PodTrack, expected: tuple[str, str]) -> None:
    """What is known of a pod is the status of its condition, and the evidence its reason."""
    assert [expected] == Pods().says(track)


@pytest.mark.parametrize(("held", "begins"), [(CARD, "no kernels"), ((), "it was given a GPU")])
def test_an_idle_pod_says_of_what_it_does_nothing(held: frozenset[str], begins: str) -> None:
    """One that holds memory does no work, one that holds none has only claimed its GPU."""
    (change,) = Pods().told(IDLE._replace(held=frozenset(held)))

    assert change.message.startswith(begins)


def test_the_condition_names_the_very_pod() -> None:
    """What is to be written has the pod's UID, and a sentence."""
    (change,) = Pods().told(UNKNOWN)

    assert ("team-a", "a", UID) == change[:3]
    assert "the driver cannot tell" == change.message


YOUNG = UNKNOWN._replace(idle_since=NOW)
TAKEN_BACK = [("Unknown", "NotMeasurable")]


@pytest.mark.parametrize(
    ("shown", "track", "expected"),
    [
        ("False", IDLE._replace(idle_since=NOW - 59.0), []),
        ("", YOUNG, []),
        ("True", YOUNG, TAKEN_BACK),
        ("True", IDLE._replace(idle_since=NOW - 5.0), TAKEN_BACK),
        ("True", None, TAKEN_BACK),
        ("", None, []),
        ("True", IDLE, []),
    ],
    ids=[
        *("idle takes a minute", "seen only once", "a new agent's first look"),
        *("a new agent has to watch for a minute itself", "holds and claims nothing any more"),
        *("never did", "stands as it should"),
    ],
)
def test_what_is_said_depends_on_what_stands_there(
    shown: str, track: PodTrack | None, expected: list[tuple[str, str]]
) -> None:
    """What is not known is taken back where an agent has said it, and is no news elsewhere."""
    assert expected == Pods(shown).says(track)


def test_who_has_ended_says_nothing() -> None:
    """A pod that has succeeded or failed is left alone."""
    pods = Pods("True")
    pods.pod = replace(pods.pod, ended=True)

    assert [] == pods.says(BUSY)


def test_what_was_just_written_is_not_written_again() -> None:
    """It takes a while until the API server shows it; after that it is written anew."""
    pods = Pods()

    assert [("True", "NoKernels")] == pods.says(IDLE)
    assert [] == pods.says(IDLE, now=NOW + 29)
    assert [("True", "NoKernels")] == pods.says(IDLE, now=NOW + 30)


def test_a_true_is_taken_back_at_once() -> None:
    """A pod that begins to work while its True is still on its way to the API server says so."""
    pods = Pods("False")
    pods.says(IDLE)

    assert [("False", "Busy")] == pods.says(BUSY, now=NOW + 1)


def test_changes_that_take_nothing_back_are_few() -> None:
    """Who is unknown now and busy then says so once a minute."""
    pods = Pods()
    first = pods.says(BUSY)
    pods.show("False")
    soon = pods.says(UNKNOWN, now=NOW + 40)
    later = pods.says(UNKNOWN, now=NOW + 60)

    assert ([("False", "Busy")], [], [("Unknown", "NotMeasurable")]) == (first, soon, later)


def test_nothing_is_kept_of_pods_that_are_gone() -> None:
    """What was said of a pod is forgotten with it."""
    pods = Pods()
    pods.says(BUSY)
    _, said = conditions(pods_on_node([]), ActivityMemory(), pods.said, POLICY, NOW)

    assert {} == said


def test_a_message_has_a_bound() -> None:
    """A driver's long story is cut."""
    (change,) = Pods().told(UNKNOWN._replace(why="x" * 5000))

    assert 256 == len(change.message)


@pytest.fixture
def card() -> Watched:
    """A card with a pod that has done nothing for a while beside one that holds no memory."""
    return Watched().add("a", 1).claim("claims").settle()


def test_the_busy_share_is_that_of_a_minute(card: Watched) -> None:
    """Three answers with work in a minute are a quarter of it, wherever they lie."""
    card.settle(12)
    for workers in ([1], (), [1], (), [1]):
        card.pass_(workers)

    assert (0.25, 0.0) == (card.whole("a").busy_share, card.whole("claims").busy_share)


def test_the_busy_share_of_a_young_pod_is_that_of_its_time() -> None:
    """What was not watched does not count: who worked ever since is busy all the time."""
    card = Watched().add("a", 1)
    shares = [card.pass_(done).whole("a").busy_share for done in ([1], [1], (), [1])]

    assert [1.0, 1.0, 0.5, 2 / 3] == shares


def test_what_the_busy_share_forgets(card: Watched) -> None:
    """A hole is no rest, and what is older than a minute is forgotten."""
    card.settle(12).pass_([1], hole=True).pass_([1])
    hole = card.whole("a").busy_share
    card.settle(12)

    assert 1.0 == hole
    assert (0.0, ()) == (card.whole("a").busy_share, card.whole("a").used)


def test_who_works_half_of_the_time_is_half_busy(card: Watched) -> None:
    """Of a time in which a pod worked, the share counts that the driver gives it."""
    for _ in range(12):
        card.pass_({1: 0.5})

    assert 0.5 == card.whole("a").busy_share


def test_what_the_cpu_does_counts_as_well(card: Watched) -> None:
    """
    A message is read and answered by the CPU: its time is added to that of the card, up to all.
    """
    card.settle(12)
    for _ in range(12):
        card.cpu[1] = card.cpu.get(1, 0.0) + 1.0
        card.pass_({1: 0.5})

    assert 0.7 == pytest.approx(card.whole("a").busy_share)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0.0),
        ([Span(0, 10, "a")], 1.0),
        ([Span(-5, 5, "a"), Span(5, 6, "a")], 0.6),
        ([Span(9, 99, "a"), Span(1, 2, "a")], 0.2),
        ([Span(1, 9, "a"), Span(2, 3, "b")], 0.8),
        ([Span(0, 10, "a", 0.25), Span(0, 4, "b", 0.5)], 0.25),
    ],
)
def test_spans_cover_a_part_of_a_time(spans: list[Span], expected: float) -> None:
    """The card that was used most counts, and what lies outside not at all."""
    assert expected == covered(spans, 0, 10)


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


def shown(node: ConcernedNode, later: float = 0.0) -> Snapshot:
    state = node.loop.state
    now = state.at + later
    current = state.is_current(now, ABOUT.gap_seconds)
    return snapshot_of(state, ABOUT, now, AT, node.concerns.rows(now, current=current))


def states(node: ConcernedNode, later: float = 0.0) -> set[str]:
    """Return what is shown of all pods, as a whole and on each card."""
    pods = shown(node, later).pods
    rows = [pod.activity for pod in pods] + [use.activity for pod in pods for use in pod.uses]
    return {row.state for row in rows if row}


def test_the_snapshot_tells_who_is_idle() -> None:
    """
    A pod that works has been idle for no time, one that waits since the first look at it; as a
    whole each says which part of the last minute it works. When looks stop, none is idle any more.
    """
    node = node_at_work()
    uses = {pod.name: use.activity for pod in shown(node).pods for use in pod.uses}
    node.claim(pod("claims", claims=True))
    node.tick(3)
    known = {pod.name: pod.activity for pod in shown(node).pods}

    assert ActivityRow("busy", 0.0, "Busy") == uses["works"]
    assert ActivityRow("idle", TICKS - 1.0, "NoKernels") == uses["waits"]
    assert PodActivityRow("busy", 0.0, "Busy", "", 1.0) == known["works"]
    assert PodActivityRow("idle", TICKS + 2.0, "NoKernels", "", 0.0) == known["waits"]
    assert PodActivityRow("idle", 2.0, "NoKernels", "", 0.0) == known["claims"]
    assert {"unknown"} == states(node, later=ABOUT.gap_seconds + 1)


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
    assert {"unknown"} == states(node, later=5)


def test_a_bug_in_it_harms_no_fence() -> None:
    """Where it cannot be found out who is busy, everybody is unknown, and the tick goes on."""
    node = node_at_work()
    node.processes.error = RuntimeError("bug")
    node.tick()

    assert 0 == node.loop.state.counts.failed
    assert {"unknown"} == states(node)


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
