"""What is read of pods, of nodes and of agents, and what is kept of thousands."""

import json
from collections.abc import Mapping
from time import sleep

import pytest

from gpufence import names
from gpufence.cards import write_cards
from gpufence.errors import InvalidError
from gpufence.fences import Fence
from gpufence.mode import Mode
from gpufence.plan import Done, Setting, write_setting
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import CARD_ROWS, OUTLINES, PodActivityRow, write_snapshot
from kube import UnreachableError
from kubectl_gpufence.agents import AgentPatience, ask_agents
from kubectl_gpufence.cluster_view import by_node, named, see_node, silent_notes
from kubectl_gpufence.gpushare.books import read_booking
from kubectl_gpufence.pods import AlikePlans, SeenPod, StatusPod, read_status_pod, see_pod, slim
from kubectl_gpufence.verbs.idle.lines import IdleLine, SeenOwners, idle_lines, is_about, use_of
from tests.support.builders import container, gpushare, pod
from tests.support.gpushare_cases import booked
from tests.support.plugin import (
    NODE,
    agent,
    pod_row,
    raw_node,
    raw_pod,
    seen_node,
    seen_pod,
    snapshot,
    use_row,
)
from tests.support.verb_cases import (
    BUSY,
    JOB,
    UNMEASURED,
    WORKER,
    alone,
    api_owner,
    idle,
    led,
    measured,
    owned,
    said,
)


def planned(**changed: object) -> SeenPod:
    """Return a pod of whose plan some parts are these."""
    raw = raw_pod()
    plan = json.loads(raw["metadata"]["annotations"][names.PLAN])
    raw["metadata"]["annotations"][names.PLAN] = json.dumps({**plan, **changed})
    return see_pod(raw, seen_node().gpu)


def by_driver() -> dict[str, object]:
    """Return the plan's containers with a limit for the driver."""
    setting = write_setting(Setting(names.DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=GIB))
    plan = json.loads(raw_pod()["metadata"]["annotations"][names.PLAN])
    for one in plan["containers"].values():
        one["settings"].append(json.loads(setting))
    return dict(plan["containers"])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (planned(), Fence.FRAMEWORK),
        (planned(containers={}), Fence.AGENT),
        (planned(dialect="hami"), Fence.LIBRARY),
        (planned(dialect="mig"), Fence.MIG),
        (planned(containers=by_driver()), Fence.DRIVER),
        (planned(limit=None), None),
        (seen_pod(mode=None), None),
    ],
    ids=["framework", "agent", "library", "mig", "driver", "no limit", "no plan"],
)
def test_a_plan_says_what_shall_hold_a_pod(found: SeenPod, expected: Fence | None) -> None:
    """Hardware, driver, library and frameworks are known before any agent has looked."""
    assert expected == found.planned_fence


def test_the_webhooks_figures_count_before_our_own() -> None:
    """Its limit was made with the operator's settings; init containers add nothing to the cap."""
    both = raw_pod(gpushare("main", 3), initContainers=[gpushare("first", 3)])
    first = raw_pod(container("main"), initContainers=[gpushare("first", 3)])
    found = planned(limit="3Mi")

    assert (3 * MIB, 3 * GIB) == (found.limit_bytes, found.declaration.limit_bytes)
    assert [2150 * MIB] * 2 == [see_pod(each, seen_node().gpu).told_bytes for each in (both, first)]
    assert [True, False, False] == [
        seen_pod(mode=mode).only_planned for mode in (Mode.OBSERVE, Mode.EVICT, None)
    ]


@pytest.mark.parametrize(
    ("raw", "uses", "why"),
    [
        (pod(), False, "no container asks for GPU memory"),
        (pod(annotations={names.MEMORY: "1Gi"}), True, ""),
        (pod(annotations={f"{names.MEMORY_OF_CONTAINER}main": "1Gi"}), True, ""),
        (pod(gpushare("main", "many")), True, '"many" is not'),
        (pod(annotations={names.KAI_FRACTION: "0.5"}), True, "the size of its card is not known"),
    ],
)
def test_a_pod_declares_memory_or_says_why_not(
    raw: dict[str, object], why: str, *, uses: bool
) -> None:
    """By resources or annotations; unreadable, undeclared and unknown are not the same."""
    found = see_pod(raw, None)

    assert (uses, True) == (found.uses_gpu, why in found.declaration.why_not)
    assert bool(why) == (found.declaration.limit_bytes is None)


def test_the_controller_is_the_owner() -> None:
    """Other owners do not make pods anew; what is no pod is refused."""
    raw = pod()
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Queue", "name": "q"},
        {"kind": "Job", "name": "j", "controller": True},
    ]

    assert ["Job/j", ""] == [see_pod(each, None).owner for each in (raw, pod())]
    with pytest.raises(InvalidError):
        see_pod({"metadata": []}, None)


def test_a_node_tells_its_cards_or_why_not() -> None:
    """A missing annotation and a broken one are two things; cards are kept once."""
    silent, broken, bare = raw_node(), raw_node(), raw_node(count=0)
    del silent["metadata"]["annotations"][names.CARDS]
    broken["metadata"]["annotations"][names.CARDS] = "{"
    node = seen_node()
    assert node.gpu is not None
    assert node.cards is not None
    bare["metadata"]["annotations"] = {names.CARDS: write_cards(node.cards._replace(cards=()))}
    alone = see_node(bare | {"status": {}})

    assert node.cards.cards is node.gpu.cards
    assert (None, "") == (see_node(silent).cards, see_node(silent).cards_trouble)
    assert see_node(broken).cards_trouble.startswith(names.CARDS)
    assert (None, ()) == (alone.gpu, alone.cards and alone.cards.cards)


def test_while_an_agent_is_replaced_the_one_that_answers_counts() -> None:
    """Two pods on a node are one agent, one without a node none yet; silence is noted once."""
    old, new = agent(None, "gone", pod="old"), agent(snapshot(), pod="new")
    pending = agent(None, "pending", node="")
    denied = [agent(None, "you may not", node=f"n{place}") for place in range(5)]
    lost = agent(None, "lost", node="", pod="pod-x")

    assert {"gpu-1": new} == by_node([pending, old, new]) == by_node([new, old])
    assert (
        "5 agents (n0, n1, n2 and 2 more): you may not",
        "1 agent (pod-x): lost",
    ) == silent_notes([*denied, lost, new])
    assert "a, b" == named(["b", "a"])


def test_an_agents_pod_says_where_and_how_it_is_asked() -> None:
    """Its name, its node, whether it is ready, and its status port, which has a usual number."""
    port = {"name": "status", "containerPort": 9000}
    ready = {"type": "Ready", "status": "True"}
    raw = {
        "metadata": {"name": "agent-x"},
        "spec": {"nodeName": "gpu-1", "containers": [{}, {"ports": [{"name": "other"}, port]}]},
        "status": {"conditions": [{"type": "Other", "status": "True"}, ready]},
    }

    assert StatusPod("agent-x", "gpu-1", ready=True, port=9000) == read_status_pod(raw)
    assert StatusPod("", "", ready=False, port=8080) == read_status_pod({})
    assert not read_status_pod({"status": {"conditions": [ready | {"status": "False"}]}}).ready


def test_a_slim_pod_declares_and_tells_the_same() -> None:
    """What the webhook wrote has been read, and notes of others say nothing here."""
    raw = raw_pod(gpushare("main", 3))
    raw["metadata"]["annotations"] |= {
        names.MEMORY: "2Gi",
        names.GPUSHARE_CARD_INDEX: "0",
        "x": "y",
    }
    whole = see_pod(raw, seen_node().gpu)
    thin = slim(whole)

    assert {names.MEMORY, names.GPUSHARE_CARD_INDEX} == set(thin.annotations)
    assert (whole.declaration, whole.limit_bytes, whole.told_bytes) == (
        thin.declaration,
        thin.limit_bytes,
        thin.told_bytes,
    )


def test_plans_that_are_alike_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal texts give the very same plan; no more are remembered than there is room for."""
    plans = AlikePlans()
    raws = [raw_pod(gpushare("main", amount)) for amount in (2, 3)]
    one, other = (see_pod(raw, None, plans=plans).recorded for raw in raws)
    again = see_pod(raws[0], None, plans=plans).recorded
    first = plans({names.PLAN: "0"})
    for number in range(1, AlikePlans.MOST + 1):
        plans({names.PLAN: str(number)})
    monkeypatch.setattr(AlikePlans, "MOST_SETTINGS", 1)
    few = AlikePlans()

    assert see_pod(raws[0], None).recorded == one != other
    assert again is one
    assert first is not plans({names.PLAN: "0"})
    assert [one, other] == [see_pod(raw, None, plans=few).recorded for raw in raws]
    assert not see_pod(pod(), None, plans=few).recorded.trouble


@pytest.mark.parametrize("cards", [5, "0", True])
def test_an_allocation_without_cards_leaves_the_pod_to_its_index(cards: object) -> None:
    """Go refuses all of an allocation in which a container has no map of cards."""
    booking = read_booking(booked("wrong", "gpu-1", "2", index="1", allocation={"0": cards}))

    assert booking is not None
    assert {1: 2} == booking.shares


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three agents be enough to know how long they take."""
    monkeypatch.setattr(AgentPatience, "ENOUGH", 3)


def patient(seconds: float = 0.0, agents: int = 3) -> AgentPatience:
    """Ask enough agents that take so long."""

    def answer(_: float) -> str:
        sleep(seconds)
        return ""

    patience = AgentPatience()
    for _ in range(agents):
        patience.ask(answer)
    return patience


@pytest.mark.usefixtures("few")
def test_agents_are_waited_for_by_how_long_others_take() -> None:
    """The first have their time; where all answer at once a second is long, else it is not."""
    first, least = AgentPatience.FIRST_SECONDS, AgentPatience.LEAST_SECONDS

    assert first == patient(agents=2).seconds
    assert least == patient().seconds
    assert least < patient(0.06).seconds < first == patient(0.16).seconds


@pytest.mark.usefixtures("few")
def test_no_answer_teaches_nothing() -> None:
    """Those that hang do not make others wait longer."""
    patience = patient()

    def hang(seconds: float) -> str:
        raise UnreachableError(f"nothing in {seconds} s")

    with pytest.raises(UnreachableError, match=r"nothing in 1\.0 s"):
        patience.ask(hang)
    assert AgentPatience.LEAST_SECONDS == patience.seconds


def test_of_a_snapshot_only_what_is_wanted_is_kept() -> None:
    """What is not shown has no room; tables of nodes keep which pods are fenced and over."""
    over = pod_row(use_row(over_seconds=5.0), use_row())
    state = snapshot(pod_row(), over)
    text = write_snapshot(state)
    whole, cards, outlines = (
        ask_agents([StatusPod("a", "a")], lambda _: text, print, part)[0]
        for part in (None, CARD_ROWS, OUTLINES)
    )
    assert cards.snapshot is not None
    assert outlines.snapshot is not None

    assert (state, text, "") == (whole.snapshot, whole.text, cards.text)
    assert (state.cards, (), ()) == (
        cards.snapshot.cards,
        cards.snapshot.pods,
        cards.snapshot.nobody,
    )
    assert [("evict", 0), ("evict", 1)] == [
        (row.mode, len(row.uses)) for row in outlines.snapshot.pods
    ]


def line_of(**pods: PodActivityRow) -> IdleLine:
    """Build the line of an owner whose pods do this, with a GiB each."""
    rows = (measured(name, doing, GIB) for name, doing in pods.items())
    owners = SeenOwners(tuple(owned(WORKER, name) for name in pods), {NODE: snapshot(*rows)})
    return idle_lines(owners, "")[0]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ({"a": idle(60.0), "b": idle(7200.0)}, ("idle", 60.0, 1 / 30)),
        ({"a": BUSY, "b": idle(7200.0)}, ("busy", 0.0, 0.0)),
        ({"a": UNMEASURED, "b": idle(7200.0)}, ("unknown", None, None)),
        ({"a": idle(1800.0), "b": idle(1800.0)}, ("idle", 1800.0, 1.0)),
    ],
)
def test_an_owner_is_as_idle_as_its_busiest_pod(
    pods: Mapping[str, PodActivityRow], expected: tuple[object, ...]
) -> None:
    """Unknown is never idle, and hours in vain are memory times time."""
    line = line_of(**pods)

    assert expected == (line.state, line.idle_seconds, line.gib_hours)
    assert line.state != "unknown" or line.why == "a: MPS is on the card"


@pytest.mark.parametrize(
    ("doing", "state", "why"),
    [
        (idle(8.0), "busy", "the controller waits until its pods have been idle for longer"),
        (BUSY, "idle", "it is in use again"),
        (BUSY, "busy", "pod a uses its GPU"),
    ],
)
def test_what_the_controller_does_not_know_yet_is_not_its_reason(
    doing: PodActivityRow, state: str, why: str
) -> None:
    """State, time and reason are of one moment."""
    releases = said(WORKER, state=state, why="pod a uses its GPU")

    assert why == line_of(a=doing)._replace(said=releases).why


def test_owners_are_those_of_the_namespace_in_whichever_version() -> None:
    """The most in vain is first; memory that is hidden is not added up."""
    older = WORKER._replace(kind=WORKER.kind._replace(api_version="apps/v1beta1"))
    hidden = snapshot(measured("a", idle(60.0), GIB, None))

    assert ["worker", "claimer"] == [line.name for line in idle_lines(alone(), "")][:2]
    assert [] == idle_lines(led()._replace(pods=()), "team-b")
    assert [True, False] == [
        is_about(line_of(a=BUSY), owner) for owner in (older, api_owner("worker", JOB))
    ]
    assert [None] == [
        line.held_bytes
        for line in idle_lines(SeenOwners((owned(WORKER, "a"),), {NODE: hidden}), "")
    ]


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (None, "no agent of node gpu-1 answers"),
        (snapshot(), "the agent of node gpu-1 says nothing of it"),
        (snapshot(measured("a", None, GIB)), "the agent of node gpu-1 says nothing of it"),
        (snapshot(stale_seconds=99.0), "what the agent of node gpu-1 knows is too old"),
    ],
)
def test_what_no_agent_says_is_unknown(shown: object, why: str) -> None:
    """Silence, age and older agents make a pod unknown, each with its reason."""
    use = use_of(owned(WORKER, "a"), shown)  # type: ignore[arg-type]  # None or a snapshot

    assert ("unknown", None, why) == (use.state, use.idle_seconds, use.why)
