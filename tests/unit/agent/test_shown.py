"""The pages: metrics that are well-formed and bounded, concerns among them, and the snapshot."""

import re
from dataclasses import replace

import pytest

from agent.metrics import RENAMED, page
from agent.model.pod import Cap, PodLimit, pods_on_node
from agent.model.state import About, AgentState
from agent.model.use import ProcessUse
from agent.snapshot_view import snapshot_of
from gpufence.names import UNATTRIBUTED
from gpufence.quantity import GIB
from gpufence.snapshot import LeftRow
from tests.support.agent.builders import CARDS, LIMIT, on_card, pod
from tests.support.agent.node import ABOUT, ConcernedNode, Node, busy_state, running
from tests.support.metric_rules import problems
from tools import ROOT


@pytest.fixture(scope="module")
def state() -> AgentState:
    return busy_state()


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def values(text: str, start: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in lines(text, start)]


def test_pages_pass_the_lint(state: AgentState) -> None:
    """
    Every family has help, type and unit, and no line is there twice: with concerns, without, and
    before the first look.
    """
    node = ConcernedNode()
    busy = busy_state(node)
    more = node.concerns.families(busy.last, busy.at)
    about = About("n1", "1", "2026-01-02T03:04:05Z", 3.0)
    empty = page(AgentState(10.0, 10.0), about, 11.0)
    pages = (page(state, ABOUT, state.at), page(busy, ABOUT, busy.at, more), empty)

    assert [[]] * 3 == [list(problems(each)) for each in pages]
    assert [] == lines(empty, "gpufence_last_sample_timestamp_seconds")
    assert [] == lines(empty, "gpufence_cluster")


def test_an_old_look_is_not_shown_as_new(state: AgentState) -> None:
    """When the loop hangs, figures vanish and the time stays; so does what was counted."""
    text = page(state, replace(ABOUT, booted=1e9), state.at + 100.0)

    assert [] == lines(text, "gpufence_pod_")
    assert [] == lines(text, "gpufence_card_")
    assert [] == lines(text, "gpufence_brake")
    assert [str(int(1e9 + state.at))] == values(text, "gpufence_last_sample_timestamp_seconds")
    assert ["100"] == values(text, "gpufence_sample_age_seconds")
    assert ["1"] == values(text, 'gpufence_evictions_total{action="evict",result="accepted"')


def test_every_metric_is_in_the_documentation() -> None:
    """The page of settings explains each metric, and no other."""
    node = ConcernedNode()
    state = busy_state(node)
    more = node.concerns.families(state.last, state.at)
    text = (ROOT / "docs" / "settings-agent.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(gpufence_[a-z_]+)` \|", text, re.MULTILINE)
    shown = [line.split()[2] for line in lines(page(state, ABOUT, state.at, more), "# TYPE ")]
    lasting = [name for name in shown if name not in {row.old for row in RENAMED}]

    assert [*lasting, "gpufence_build_info"] == documented


def test_every_line_names_its_node(state: AgentState) -> None:
    """An agent that is scraped without the shipped monitor says of which node it speaks."""
    text = page(state, ABOUT, state.at)
    nameless = [line for line in text.splitlines() if 'node="gpu-1"' not in line]

    assert [] == [line for line in nameless if not line.startswith("#")]


AT = "2026-01-02T03:05:06Z"


def test_before_the_first_look_nothing_is_known() -> None:
    """An agent that has just started says so, with nothing measured."""
    snapshot = snapshot_of(AgentState(1.0, 1.0), About("n1", "1", AT, 3.0), 2.0, AT)

    assert "the cards have not been looked at yet" == snapshot.trouble
    assert (None, "", False) == (snapshot.stale_seconds, snapshot.highest, snapshot.fresh)


def test_an_old_look_keeps_its_rows_and_loses_its_figures(state: AgentState) -> None:
    """When the loop hangs, cards and pods stay, and what they hold is unknown."""
    snapshot = snapshot_of(state, ABOUT, state.at + 100.0, AT)

    assert 100.0 == snapshot.stale_seconds
    assert "the cards have not been looked at for too long" == snapshot.trouble
    assert {None} == {card.used_bytes for card in snapshot.cards}
    assert {None} == {use.used_bytes for pod in snapshot.pods for use in pod.uses}
    assert () == snapshot.nobody


def test_the_kill_switch_is_told_once_it_was_read(state: AgentState) -> None:
    """The highest mode is empty until the cluster has been read."""
    status = ABOUT.cluster
    assert status is not None
    unread = replace(ABOUT, cluster=replace(status, synced=False))

    assert "evict" == snapshot_of(state, ABOUT, state.at, AT).highest
    assert "" == snapshot_of(state, unread, state.at, AT).highest


def test_pods_that_are_gone_have_no_row(state: AgentState) -> None:
    """Memory of a pod that the API server does not know any more is no pod's on either page."""
    last = state.last
    assert last is not None
    empty = replace(last.observation, pods=pods_on_node([]))
    gone = replace(state, last=replace(last, observation=empty))

    assert () == snapshot_of(gone, ABOUT, state.at, AT).pods
    assert [] == lines(page(gone, ABOUT, state.at), "gpufence_pod_")


@pytest.mark.parametrize(
    ("holding", "told", "expected"),
    [
        (("main", "main", "aside"), ("main", "aside", "idle"), 2 * GIB),
        (("main", "aside"), ("main",), None),
        ((), (), None),
    ],
)
def test_what_containers_were_told_is_added_up(
    holding: tuple[str, ...], told: tuple[str, ...], expected: int | None
) -> None:
    """
    Each container that holds memory counts once, and without a word to every one there is no sum.
    """
    processes = [ProcessUse(1, 1, None, "uid-a", name) for name in holding]
    item = pod(caps=dict.fromkeys(told, Cap(GIB, 1)))

    assert expected == on_card(item, 1, *processes).allowance_bytes


def test_a_fenced_pod_without_memory_has_a_row_without_uses() -> None:
    """Who is fenced and holds nothing is listed all the same."""
    node = Node()
    node.api.known = pods_on_node([pod("idle")])
    node.tick()
    (row,) = snapshot_of(node.loop.state, ABOUT, node.clock.now, AT).pods

    assert ("idle", ()) == (row.name, row.uses)


def test_what_a_card_lists_for_a_pod_that_has_ended_is_shown_as_that_pods() -> None:
    """The Node's Event names it with its amount, as the snapshot does; the metric adds it up."""
    node = Node()
    node.add(pod("trainer-0"), 3 * GIB, 1195)
    node.tick()
    del node.processes.living[1195]
    node.api.known = pods_on_node(())
    node.tick(40)
    (event,) = [item.notice for item in node.api.written if item.notice.reason == UNATTRIBUTED]
    state = node.loop.state
    (card,) = snapshot_of(state, ABOUT, state.at, "2026-01-02T03:05:06Z").cards

    assert "3072 MiB by PID 1195, of pod team-a/trainer-0, which has ended." in event.message
    assert (LeftRow("team-a/trainer-0", 1195, 3 * GIB),) == card.left
    assert [f"{3 * GIB}"] == values(page(state, ABOUT, state.at), "gpufence_card_memory_left_bytes")


@pytest.mark.parametrize(
    ("group", "held", "shown"),
    [
        ("", LIMIT + GIB, (LIMIT, GIB, 0)),
        ("", 6 * GIB, (LIMIT, 2 * GIB, 0)),
        ("", GIB, (LIMIT, 0, 2 * GIB)),
        ("claim/gpu", GIB, (None, 0, 2 * GIB)),
    ],
    ids=["borrows", "over its limit", "owed", "of several that share a claim"],
)
def test_a_pod_that_may_borrow(group: str, held: int, shown: tuple[int | None, int, int]) -> None:
    """Of a pod that may hold more than its request, request, loan and what it is owed are shown."""
    limit = PodLimit(5 * GIB, share_bytes=LIMIT, group=group)
    with running() as node:
        node.add(pod(limits={CARDS[0].uuid: limit}), held, 1)
        node.tick()
        state = node.loop.state
    (row,) = snapshot_of(state, ABOUT, state.at, "2026-01-02T03:05:06Z").pods
    (use,) = row.uses
    text = page(state, ABOUT, state.at)
    wanted = [] if group else [[str(shown[0])], [str(shown[1])]]

    assert shown == (use.promised_bytes, use.borrowed_bytes, use.owed_bytes)
    assert wanted == [
        found
        for name in ("requested", "borrowed")
        if (found := values(text, f"gpufence_pod_{name}_bytes{{"))
    ]
