"""What is read of pods and of those who measure them, and what is kept of thousands."""

import io
import json
from pathlib import Path

import pytest

from agent.fence import PodContext
from agent.pod_view import read_pod_on_node
from gpufence import names
from gpufence.cards import write_cards
from gpufence.dialects import Units
from gpufence.errors import InvalidError
from gpufence.fences import Fence
from gpufence.mode import Mode
from gpufence.plan import Done, Setting, write_setting
from gpufence.quantity import GIB, MIB
from kubectl_gpufence.cluster_view import (
    ClusterAnswers,
    NodeAgent,
    by_node,
    named,
    see_node,
    silent_notes,
)
from kubectl_gpufence.gpushare.books import read_booking
from kubectl_gpufence.output import output_to
from kubectl_gpufence.pod_lines import POD_FIELDS, pod_lines
from kubectl_gpufence.pods import AlikePlans, SeenPod, StatusPod, read_status_pod, see_pod, slim
from kubectl_gpufence.verbs.doctor.installation import read_labelled
from kubectl_gpufence.verbs.explain.chapters import explanation
from kubectl_gpufence.verbs.explain.record import PodRecord
from kubectl_gpufence.view import Display, columns_of, records, table
from tests.support.agent.builders import CARDS
from tests.support.builders import container, gpushare, pod
from tests.support.builders import pod as built
from tests.support.gpushare_cases import booked
from tests.support.plugin import NODE, agent, raw_node, raw_pod, seen_node, seen_pod, snapshot


def test_the_webhooks_limit_counts_before_our_own() -> None:
    """The plan was made with the operator's settings, which a plugin does not know."""
    raw = raw_pod()
    raw["metadata"]["annotations"][names.PLAN] = raw["metadata"]["annotations"][names.PLAN].replace(
        '"limit":"3072Mi","containers"', '"limit":"3Mi","containers"'
    )

    assert (3 * MIB, 3 * GIB) == (
        see_pod(raw, None).limit_bytes,
        see_pod(raw, None).declaration.limit_bytes,
    )


def test_init_containers_do_not_add_to_what_was_told() -> None:
    """An init container has gone when the others take their memory."""
    both = raw_pod(gpushare("main", 3), initContainers=[gpushare("first", 3)])
    alone = raw_pod(container("main"), initContainers=[gpushare("first", 3)])

    assert 2150 * MIB == see_pod(both, seen_node().gpu).told_bytes
    assert 2150 * MIB == see_pod(alone, seen_node().gpu).told_bytes


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, Fence.FRAMEWORK),
        ({"containers": {}}, Fence.AGENT),
        ({"dialect": "hami"}, Fence.LIBRARY),
        ({"dialect": "mig"}, Fence.MIG),
        ({"limit": None}, None),
    ],
    ids=["framework", "agent", "library", "mig", "no limit"],
)
def test_a_plan_says_what_shall_hold_a_pod(said: dict[str, object], expected: Fence | None) -> None:
    """Hardware, library and frameworks are known before any agent has looked."""
    assert expected == planned(said).planned_fence


def test_a_plan_with_the_drivers_limit_counts_on_the_driver() -> None:
    """One variable is enough, whatever else the container reads."""
    setting = write_setting(Setting(names.DRIVER_LIMIT, "", "driver", Done.SET, limit_bytes=GIB))
    plan = json.loads(raw_pod()["metadata"]["annotations"][names.PLAN])
    (container,) = plan["containers"].values()
    container["settings"].append(json.loads(setting))

    assert Fence.DRIVER == planned({"containers": plan["containers"]}).planned_fence
    assert None is seen_pod(mode=None).planned_fence


def planned(said: dict[str, object]) -> SeenPod:
    """Return a pod of whose plan some parts are these."""
    raw = raw_pod()
    plan = json.loads(raw["metadata"]["annotations"][names.PLAN])
    raw["metadata"]["annotations"][names.PLAN] = json.dumps({**plan, **said})
    return see_pod(raw, seen_node().gpu)


def test_a_pod_without_gpu_memory_is_none_of_ours() -> None:
    """Neither its resources nor its annotations name it."""
    assert not see_pod(pod(), None).uses_gpu
    assert see_pod(pod(annotations={names.MEMORY: "1Gi"}), None).uses_gpu
    assert see_pod(pod(annotations={f"{names.MEMORY_OF_CONTAINER}main": "1Gi"}), None).uses_gpu


def test_a_pod_that_declares_nothing_says_why() -> None:
    """Undeclared and unreadable are told apart in words."""
    unreadable = pod(gpushare("main", "many"))

    assert "no container asks for GPU memory" in see_pod(pod(), None).declaration.why_not
    assert '"many" is not' in see_pod(unreadable, None).declaration.why_not


def test_a_share_of_an_unknown_card_has_no_limit() -> None:
    """Half of a card that nobody has told of is not zero."""
    raw = pod(annotations={names.KAI_FRACTION: "0.5"})

    said = see_pod(raw, None).declaration
    assert (None, "the size of its card is not known") == (said.limit_bytes, said.why_not)


def test_the_controller_is_the_owner() -> None:
    """Other owners do not make pods anew."""
    raw = pod()
    raw["metadata"]["ownerReferences"] = [
        {"kind": "Queue", "name": "q"},
        {"kind": "Job", "name": "j", "controller": True},
    ]

    assert "Job/j" == see_pod(raw, None).owner
    assert "" == see_pod(pod(), None).owner


def test_what_is_no_pod_is_refused() -> None:
    """A list of something else is an error, not a pod without limits."""
    with pytest.raises(InvalidError):
        see_pod({"metadata": []}, None)


def test_observed_pods_have_only_a_plan() -> None:
    """In mode observe the figures are what would be done."""
    assert seen_pod(mode=Mode.OBSERVE).only_planned
    assert not seen_pod().only_planned
    assert not seen_pod(mode=None).only_planned


def test_a_node_tells_its_cards_or_why_not() -> None:
    """A missing annotation and a broken one are two things."""
    silent, broken = raw_node(), raw_node()
    del silent["metadata"]["annotations"][names.CARDS]
    broken["metadata"]["annotations"][names.CARDS] = "{"

    assert seen_node().cards is not None
    assert (None, "") == (see_node(silent).cards, see_node(silent).cards_trouble)
    assert see_node(broken).cards_trouble.startswith(names.CARDS)


def test_while_an_agent_is_replaced_the_one_that_answers_counts() -> None:
    """Two pods on a node are one agent; one without a node is none yet."""
    old, new = agent(None, "gone", pod="old"), agent(snapshot(), pod="new")
    pending = agent(None, "pending", node="")

    assert {"gpu-1": new} == by_node([pending, old, new])
    assert {"gpu-1": new} == by_node([new, old])


def test_each_reason_for_silence_is_told_once() -> None:
    """A hundred agents that may not be asked are one note."""
    denied = [agent(None, "you may not", node=f"n{place}") for place in range(5)]
    lost = agent(None, "lost", node="", pod="pod-x")

    assert (
        "5 agents (n0, n1, n2 and 2 more): you may not",
        "1 agent (pod-x): lost",
    ) == silent_notes([*denied, lost, agent(snapshot())])
    assert "a, b" == named(["b", "a"])


def test_a_namespace_is_known_by_its_label() -> None:
    """A namespace without the label has no mode; a wrong value is kept to be told."""
    raw = {"metadata": {"name": "a", "labels": {names.MODE: "Cap"}}}

    assert ("a", "Cap") == (read_labelled(raw).name, read_labelled(raw).mode)
    assert None is read_labelled({"metadata": {"name": "b"}}).mode


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
    said = {names.MEMORY: "2Gi", "example.com/note": "of no use", names.GPUSHARE_CARD_INDEX: "0"}
    raw = raw_pod(gpushare("main", 3))
    raw["metadata"]["annotations"] |= said
    whole = see_pod(raw, seen_node().gpu)
    thin = slim(whole)

    assert {names.MEMORY, names.GPUSHARE_CARD_INDEX} == set(thin.annotations)
    assert (whole.declaration, whole.limit_bytes, whole.told_bytes) == (
        thin.declaration,
        thin.limit_bytes,
        thin.told_bytes,
    )


def test_plans_that_are_alike_are_read_once() -> None:
    """Equal texts give the very same plan, and others their own."""
    plans = AlikePlans()
    one, other = raw_pod(), raw_pod(gpushare("main", 2))
    first = see_pod(one, None, plans=plans).recorded

    assert first is see_pod(one, None, plans=plans).recorded
    assert first != see_pod(other, None, plans=plans).recorded
    assert not see_pod(pod(), None, plans=plans).recorded.trouble


def test_no_more_plans_are_remembered_than_stand_together() -> None:
    """Tenants decide how many there are."""
    plans = AlikePlans()
    first = plans({names.PLAN: "0"})
    for number in range(1, AlikePlans.MOST + 1):
        plans({names.PLAN: str(number)})

    assert first is not plans({names.PLAN: "0"})


def test_no_more_settings_are_remembered_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plans read the same when all that is alike was forgotten between them."""
    monkeypatch.setattr(AlikePlans, "MOST_SETTINGS", 1)
    pods = [raw_pod(gpushare("main", amount)) for amount in (2, 3)]
    plans = AlikePlans()

    assert [see_pod(item, None).recorded for item in pods] == [
        see_pod(item, None, plans=plans).recorded for item in pods
    ]


def test_cards_are_kept_once_where_they_are_what_the_node_offers() -> None:
    """
    What an agent has stated stands beside what is worked out from it, and is the same; of a node
    without any it alone is known.
    """
    node = seen_node()
    assert node.gpu is not None
    assert node.cards is not None
    raw = raw_node(count=0)
    raw["metadata"]["annotations"] = {names.CARDS: write_cards(node.cards._replace(cards=()))}
    raw["status"] = {}
    bare = see_node(raw)

    assert node.cards.cards is node.gpu.cards
    assert bare.cards is not None
    assert (None, ()) == (bare.gpu, bare.cards.cards)


PLAIN = Display(width=120, colour=False, unicode=True)
DIGITS = "9" * 4299
CONTAINER = '{"limit":"3Gi","processes":%s,"headroom":"factor","cap":"2Gi","settings":[]}'
PLAN = '{"v":1,"mode":"cap","dialect":"gpushare","limit":"3Gi","containers":{"trainer":%s}}'
SETTING = (
    '{"env":%s,"slot":"s0","form":"bytes","done":"set","user":%s,'
    '"L":"1Gi","C":"1Gi","T":"1Gi","A":"1Gi"}'
)
WITH_SETTING = CONTAINER.replace("[]", "[%s]")
PLANS = {
    "many processes": PLAN % (CONTAINER % DIGITS),
    "more digits than Python reads": PLAN % (CONTAINER % (DIGITS * 2)),
    "an amount of many digits": PLAN.replace('"3Gi"', DIGITS, 1) % (CONTAINER % 1),
    "a cap below zero": PLAN % (CONTAINER % 1).replace('"2Gi"', "-5"),
    "no number": PLAN.replace('"v":1', '"v":NaN') % (CONTAINER % 1),
    "no amount": PLAN % (CONTAINER % 1).replace('"2Gi"', "NaN"),
    "without end": PLAN % (CONTAINER % 1).replace('"2Gi"', "Infinity"),
    "far too large": PLAN % (CONTAINER % 1).replace('"2Gi"', "1e999"),
    "deep": PLAN % ("[" * 900 + "]" * 900),
    "deeper": PLAN % ("[" * 100_000 + "]" * 100_000),
    "deep version": '{"v":' + "[" * 970 + "]" * 970 + "}",
    "wrong types": '{"v":1,"mode":[],"dialect":{},"limit":[[]],"containers":[1]}',
    "text for a container": PLAN % '"x"',
    "half a character": PLAN % (WITH_SETTING % (1, SETTING % ('"\\ud800"', '"\\udfff"'))),
    "a huge text": PLAN % (WITH_SETTING % (1, SETTING % ('"E"', json.dumps("x" * 200_000)))),
    "a huge name": PLAN.replace("trainer", "t" * 200_000) % "5",
    "escapes": PLAN % (WITH_SETTING % (1, SETTING % ('"\\u001b[2J"', '"\\u0007"'))),
    "no JSON": "{",
    "nothing": "",
}


def bad_pod(plan: str) -> dict[str, object]:
    made = raw_pod(name="bad-1", uid="bad")
    made["metadata"]["annotations"] |= {names.PLAN: plan, names.INJECTED: "yes"}
    return made


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_bad_pod_costs_top_one_line(plan: str) -> None:
    """The table has a line for the bad pod, and the others' lines as they are without it."""
    good = see_pod(raw_pod(), seen_node().gpu)
    bad = see_pod(bad_pod(plan), seen_node().gpu)
    agents = {NODE: NodeAgent(NODE, "agent-1", snapshot=snapshot())}
    nodes = {NODE: seen_node()}
    alone = ClusterAnswers((good,), agents, nodes)
    both = ClusterAnswers((good, bad), agents, nodes)
    columns = columns_of(POD_FIELDS, wide=True)
    rows = table(columns, pod_lines(both, ""), PLAIN)

    assert 3 == len(rows)
    assert 2 == len(json.dumps(records(POD_FIELDS, pod_lines(both, ""))).split("bad-1"))
    assert max(map(len, rows)) < 250
    assert 2 == len(table(columns, pod_lines(alone, ""), PLAIN))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_bad_pod_can_be_explained(plan: str, tmp_path: Path) -> None:
    """Its explanation is told as far as it goes, on a terminal that takes no half characters."""
    pod = see_pod(bad_pod(plan), seen_node().gpu)
    lines = explanation(PodRecord(pod=pod, mode="cap", agent=None, no_agent="", events=()), PLAIN)
    with (tmp_path / "out").open("w", encoding="utf-8") as out:
        output_to(out, io.StringIO(), {}).lines(lines)

    assert "bad-1" in (tmp_path / "out").read_text(encoding="utf-8")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_an_agent_reads_a_bad_pod(plan: str) -> None:
    """What somebody forges as a plan costs the agent no exception, and changes no limit."""
    raw = built(gpushare(), annotations={names.PLAN: plan, names.INJECTED: "yes"})
    context = PodContext({names.MODE: "evict"}, {}, Mode.EVICT, CARDS, Units())
    found = read_pod_on_node(raw, context)

    assert 3 * 2**30 == found.limits[CARDS[0].uuid].limit_bytes


@pytest.mark.parametrize("cards", [5, "0", True])
def test_an_allocation_without_cards_leaves_the_pod_to_its_index(cards: object) -> None:
    """Go refuses all of an allocation in which a container has no map of cards."""
    booking = read_booking(booked("wrong", "gpu-1", "2", index="1", allocation={"0": cards}))

    assert booking is not None
    assert {1: 2} == booking.shares
