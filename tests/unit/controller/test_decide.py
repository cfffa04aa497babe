"""What remains beside the passes in tests/golden/controller: brakes, last looks, room, and cost."""

from dataclasses import replace
from typing import Any

import pytest

from controller.decide import Places, decide, last_look, refused, released, why_not
from controller.model import (
    Announcement,
    ClusterState,
    LastLook,
    NodeRoom,
    NoticeGiven,
    OwnerState,
    PodState,
    ReleaseMemory,
    ReleaseRules,
    Step,
)
from gpufence import names
from gpufence.dialects import Units
from gpufence.idle import ReleaseNote, ReleasePhase
from gpufence.quantity import GIB
from gpufence.snapshot import PodActivityRow, PodRow, Snapshot
from tests.support.builders import card
from tests.support.observing import calls
from tests.support.release import (
    NOW,
    cluster,
    idle_pod,
    node_room,
    owner_key,
    owner_state,
    pod_state,
    waiting_pod,
)

RULES = ReleaseRules()
EMPTY = ReleaseMemory()
GPU, GPUSHARE, VOLCANO = names.NVIDIA_GPU, names.GPUSHARE_MEMORY, names.VOLCANO_MEMORY


def idle_for(seconds: float, name: str) -> OwnerState:
    """Build an owner whose only pod was called idle so many seconds ago."""
    return owner_state(idle_pod(f"{name}-0", idle_at=NOW - seconds), name=name)


def turned(*seconds: float) -> list[OwnerState]:
    return [idle_for(ago, f"w{place}") for place, ago in enumerate(seconds)]


def one_owner(*seconds: float, name: str = "x") -> OwnerState:
    pods = [idle_pod(f"{name}-{n}", idle_at=NOW - ago) for n, ago in enumerate(seconds)]
    return owner_state(*pods, name=name)


def working(name: str) -> OwnerState:
    return owner_state(pod_state(f"{name}-0", idle="False", idle_at=NOW - 600), name=name)


def after(world: ClusterState, memory: ReleaseMemory = EMPTY) -> ReleaseMemory:
    """Return what is remembered after a pass."""
    return decide(world, memory, RULES).memory


@pytest.mark.parametrize(
    ("world", "until"),
    [
        pytest.param(cluster(*turned(0, 10, 20, 30), working("x")), NOW + 3600, id="four of five"),
        pytest.param(cluster(*turned(0, 1, 2), working("x"), working("y")), 0.0, id="three of 5"),
        pytest.param(cluster(*turned(*[10] * 4)), 0.0, id="of fewer than five"),
        pytest.param(cluster(one_owner(*[10] * 8)), 0.0, id="one queue is empty"),
        pytest.param(
            cluster(pods=[idle_pod(f"x-{n}", idle_at=NOW - 10) for n in range(8)]),
            NOW + 3590,
            id="no owner",
        ),
        pytest.param(cluster(*turned(0, 30, 60, 90, 120, 150)), 0.0, id="one by one"),
        pytest.param(
            cluster(one_owner(0, 70), one_owner(0, 30, 60, 90, 120, name="y")), 0.0, id="near"
        ),
        pytest.param(cluster(*turned(*[1800] * 5)), NOW + 1800, id="before a new leader"),
        pytest.param(cluster(*turned(*[4000] * 5)), 0.0, id="long ago"),
    ],
)
def test_most_pods_turning_idle_at_once_suspends(world: ClusterState, until: float) -> None:
    """Four of five within a minute, of several owners, are doubtful for an hour."""
    assert until == after(world).suspended_until


def test_agents_that_start_anew_do_not_suspend() -> None:
    """A pod that was idle before it was unknown has not turned; one that was busy before has."""
    idle = turned(*[7200] * 6)

    def all_of(**changes: Any) -> ClusterState:
        pods = [owner.pods[0]._replace(**changes) for owner in idle]
        return cluster(
            *(owner._replace(pods=(pod,)) for owner, pod in zip(idle, pods, strict=True))
        )

    unknown, again = all_of(idle="Unknown", idle_at=NOW), all_of(idle_at=NOW)
    busy = all_of(idle="False", idle_at=NOW - 60)

    assert [0.0, NOW + 3600] == [
        after(again, after(unknown, after(before))).suspended_until
        for before in (cluster(*idle), busy)
    ]


def test_a_suspension_is_not_shortened_and_ends() -> None:
    """Whatever pods do next; at its end there is no brake."""
    memory = replace(EMPTY, suspended_until=NOW + 100)

    assert NOW + 100 == after(cluster(working("x")), memory).suspended_until
    assert "" == decide(cluster(now=NOW + 100), memory, RULES).brake


def test_only_living_pods_are_remembered() -> None:
    """A leader remembers when it began, and nothing of pods that are gone."""
    memory = after(cluster(idle_for(10, "a")))
    unmeasured = owner_state(idle_pod("b-0", idle_at=None), name="b")

    assert {"uid-of-a-0"} == memory.idle
    assert {"uid-of-a-0": NOW - 10} == memory.turned_idle
    assert {} == after(cluster(), memory).turned_idle == after(cluster(unmeasured)).turned_idle
    assert NOW == memory.began == after(cluster(now=NOW + 2), memory).began


def going(*owners: OwnerState, memory: ReleaseMemory = EMPTY, **rules: int) -> list[str]:
    """Return which of four owners go that are due beside these."""
    due = [owner_state(idle_pod(f"{name}-0"), name=name) for name in "abcd"]
    told = {owner.uid: NoticeGiven(Announcement(NOW - 300, NOW)) for owner in due}
    rule = ReleaseRules(**rules)
    acts = decide(cluster(*due, *owners), replace(memory, announced=told), rule).acts
    return [act.key.name for act in acts if act.step is Step.RELEASE]


LATELY = ReleaseNote(ReleasePhase.RELEASED, NOW - 30, 1, "idle")
GONE = owner_state(name="gone", note=LATELY)
OLD = owner_state(name="old", note=LATELY._replace(at=NOW - 60))
REMEMBERED = released(EMPTY, GONE.key, NOW - 30)


@pytest.mark.parametrize(
    ("owners", "memory", "left"),
    [
        ((OLD,), EMPTY, 3),
        ((GONE, OLD), EMPTY, 2),
        ((GONE,), REMEMBERED, 2),
        ((GONE,), released(REMEMBERED, owner_key("x"), NOW), 1),
        *(
            ((owner_state(name="f", note=LATELY._replace(at=NOW + at)),), EMPTY_SINCE, left)
            for at, EMPTY_SINCE, left in (
                (-30, ReleaseMemory(began=NOW - 59), 2),
                (-30, ReleaseMemory(began=NOW - 60), 3),
                (1, ReleaseMemory(began=NOW - 59), 3),
                (0, ReleaseMemory(began=NOW - 59), 2),
            )
        ),
    ],
)
def test_three_go_in_a_minute(
    owners: tuple[OwnerState, ...], memory: ReleaseMemory, left: int
) -> None:
    """What is remembered counts, and in a leader's first minute what notes say, each owner once."""
    assert left == len(going(*owners, memory=memory))
    assert [] == going(*owners, memory=memory, per_minute=0)


def test_one_that_was_called_off_lets_others_go_first() -> None:
    """For ten seconds the last look's word stands; releases are forgotten after a minute."""
    lately = refused(EMPTY, owner_key("a"), "pod a-0 is busy", NOW - 5)
    before = refused(EMPTY, owner_key("a"), "pod a-0 is busy", NOW - 10)
    old = released(EMPTY, owner_key("old"), NOW - 61)

    assert [["b", "c", "d"], ["a", "b", "c"]] == [going(memory=lately), going(memory=before)]
    assert [owner_key("b")] == list(refused(lately, owner_key("b"), "", NOW + 5).refused)
    assert {owner_key("new"): NOW} == released(old, owner_key("new"), NOW).released


IDLE = PodActivityRow("idle", 1200.0, "NoKernels")


def row(name: str = "worker-0", **changes: Any) -> PodRow:
    return PodRow(f"uid-of-{name}", "team-a", name, activity=IDLE)._replace(**changes)


def snapshot(*pods: PodRow, **changes: Any) -> Snapshot:
    at = "2027-01-15T08:00:00Z"
    whole = Snapshot("node-1", "1", at, at, fresh=True, stale_seconds=1.0, pods=pods)
    return whole._replace(**changes)


def test_all_agents_must_say_idle() -> None:
    """The least idle of the pods counts; pods that end or have no GPU are not asked about."""
    ending, plain = idle_pod("d", terminating=True), pod_state("e", gpu=None)
    owner = owner_state(
        idle_pod("a"), idle_pod("b", node="node-2"), waiting_pod("c"), ending, plain
    )
    later = row("b", activity=IDLE._replace(idle_seconds=900.0))
    said = {"node-1": snapshot(row("a")), "node-2": snapshot(later, node="node-2")}

    assert LastLook(900.0) == last_look(owner, said)
    assert LastLook(None, "it has no pod on any node") == last_look(owner_state(), {})
    assert ["", "one of its pods has been idle for 14 min 59 s only", "unknown"] == [
        why_not(LastLook(idle), 900) for idle in (900.0, 899.0, None)
    ]


NODE_1 = "the agent of node node-1"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, f"{NODE_1} does not answer"),
        (snapshot(row(), node="node-9"), "who answers for node node-1 is the agent of node-9"),
        (
            snapshot(row(), fresh=False),
            f"{NODE_1} cannot tell: it does not hear from the API server",
        ),
        (snapshot(row(), trouble="NVML hangs"), f"{NODE_1} cannot tell: NVML hangs"),
        (snapshot(row(), stale_seconds=10.5), f"what {NODE_1} knows is too old"),
        (snapshot(row(), stale_seconds=None), f"what {NODE_1} knows is too old"),
        (snapshot(), f"{NODE_1} does not tell what pod worker-0 does"),
        (snapshot(row(uid="another")), f"{NODE_1} does not tell what pod worker-0 does"),
        (snapshot(row(activity=None)), f"{NODE_1} does not tell what pod worker-0 does"),
        (snapshot(row(activity=PodActivityRow("busy", 0.0, "Busy"))), "pod worker-0 is busy"),
        (
            snapshot(row(activity=PodActivityRow("unknown", None, "x", "MPS is there"))),
            "pod worker-0 is unknown (MPS is there)",
        ),
        (
            snapshot(row(activity=IDLE._replace(idle_seconds=None))),
            "it is unknown since when pod worker-0 has been idle",
        ),
    ],
)
def test_anything_but_idle_ends_a_release(answer: Snapshot | None, why: str) -> None:
    """Silence, old news and another pod speak against it, each in a sentence."""
    look = last_look(owner_state(idle_pod()), {"node-1": answer})

    assert (LastLook(None, why), why) == (look, why_not(look, 60))


SHARED = {GPUSHARE: 32, names.GPUSHARE_COUNT: 2}
SLICED = node_room(units=Units(clients=4), offered={GPU: 8})
MIG = "nvidia.com/mig-1g.5gb"
INSTANCES = tuple(card(n, memory_bytes=5 * GIB, parent="GPU-0", profile="1g.5gb") for n in range(3))
ZONE_A = {"nodeSelector": {"zone": "a"}}
ODD_AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": 3}}
}


def asking(name: str = "more", **changes: Any) -> PodState:
    """Build one more replica, on no node yet; or what is there, by a name and on a node."""
    return pod_state(name, **({"node": "" if name == "more" else "node-1"} | changes))


def up_to(memory: str, name: str = "more") -> PodState:
    return asking(name, annotations={names.MEMORY: memory})


def units(amount: int, index: int | None = None, name: str = "more") -> PodState:
    """Build a pod of gpushare, on the card that the extender gave it."""
    annotations = {} if index is None else {"ALIYUN_COM_GPU_MEM_IDX": str(index)}
    return asking(name, requests={GPUSHARE: amount}, annotations=annotations)


HALF: dict[str, Any] = {"requests": {}, "annotations": {"gpu-fraction": "0.5"}}
HAMI = {GPU: 1, names.HAMI_MEMORY: 6144}
TEN = (units(10, 0, "a"), units(10, 1, "b"))
THERE = asking("a")
OF_SHARED, OF_HAMI = node_room(offered=SHARED), node_room(offered={GPU: 20})
ON_VOLCANO = asking("a", requests={VOLCANO: 10240}, annotations={"volcano.sh/gpu-index": "0"})
ROOM: list[tuple[str, int, PodState, tuple[PodState, ...], NodeRoom]] = [
    ("both cards", 2, asking(), (), node_room()),
    ("one card", 1, asking(), (THERE,), node_room()),
    ("no card", 0, asking(), (THERE, asking("b")), node_room()),
    ("places of the node", 3, asking(), (), node_room(offered={GPU: 8, "pods": 3})),
    ("not offered", 0, asking(requests={GPU: 1, VOLCANO: 1}), (), node_room()),
    ("none asked", 8, asking(requests={GPU: 1, VOLCANO: 0}), (), node_room(cards=8)),
    ("beside one that ends", 1, asking(), (asking("a", terminating=True),), node_room()),
    (
        *("beside one without a GPU", 0, asking(), (asking("a", requests={}, gpu=None),)),
        node_room(offered={GPU: 2, "pods": 1}),
    ),
    ("without a GPU", 109, asking(requests={}, gpu=None), (THERE,), node_room()),
    ("cordoned", 0, asking(spec=ZONE_A), (), node_room(unschedulable=True)),
    ("tainted", 0, asking(), (), node_room(taints=[{"key": "gpu", "effect": "NoSchedule"}])),
    ("another zone", 0, asking(spec=ZONE_A), (), node_room(labels={"zone": "b"})),
    ("its zone", 2, asking(spec=ZONE_A), (), node_room(labels={"zone": "a"})),
    ("an odd affinity", 0, asking(spec={"affinity": ODD_AFFINITY}), (), node_room()),
    ("gpushare by card", 4, units(8), (), OF_SHARED),
    ("too little on each", 0, units(8), TEN, OF_SHARED),
    ("enough on each", 2, units(6), TEN, OF_SHARED),
    ("enough on one", 2, units(8), TEN[:1], OF_SHARED),
    ("on an unknown card", 0, units(8), (units(10, name="a"),), OF_SHARED),
    ("on a card that is not there", 0, units(8), (units(10, 7, "a"),), OF_SHARED),
    ("cards not counted", 2, units(12), (), node_room(offered={GPUSHARE: 32})),
    ("no cards", 2, units(12), (), node_room(own_cards=(), offered={GPUSHARE: 32})),
    ("no cards, one large", 3, units(12), (), node_room(own_cards=(), offered={GPUSHARE: 36})),
    (
        *("Volcano by card", 1, asking(requests={VOLCANO: 16384}), (ON_VOLCANO,)),
        node_room(offered={VOLCANO: 32768, names.VOLCANO_NUMBER: 2}),
    ),
    ("clients, two of 6 GiB each", 4, up_to("6Gi"), (), SLICED),
    ("clients, beside 4 GiB", 3, up_to("6Gi"), (up_to("4Gi", "a"),), SLICED),
    ("clients, beside 8 GiB", 2, up_to("6Gi"), (up_to("8Gi", "a"),), SLICED),
    ("clients, beside one without a limit", 3, up_to("6Gi"), (THERE,), SLICED),
    ("clients without a limit", 7, asking(), (THERE,), SLICED),
    (
        *("beside those that use no card", 4, up_to("6Gi")),
        *((asking("a", gpu=None), asking("b", requests={})), SLICED),
    ),
    (
        *("cards of unknown size", 8, up_to("6Gi"), ()),
        node_room(units=Units(clients=4), own_cards=(), offered={GPU: 8}),
    ),
    ("HAMi's memory", 4, asking(requests=HAMI), (), OF_HAMI),
    (
        "HAMi's memory, beside another",
        3,
        asking(requests=HAMI),
        (asking("a", requests=HAMI),),
        OF_HAMI,
    ),
    (
        "HAMi's memory without vGPUs",
        0,
        asking(requests=HAMI),
        (),
        node_room(offered={GPUSHARE: 15}),
    ),
    ("two cards at once", 2, asking(requests={**HAMI, GPU: 2}), (), OF_HAMI),
    ("KAI's share", 4, asking(**HALF), (), node_room()),
    ("KAI's share beside a card in use", 2, asking(**HALF), (THERE,), node_room()),
    ("KAI's memory", 2, asking(requests={}, annotations={"gpu-memory": "9000"}), (), node_room()),
    ("KAI without GPUs", 0, asking(**HALF), (), node_room(offered={"cpu": 1000})),
    (
        *("MIG", 2, asking(requests={MIG: 1}), (asking("a", requests={MIG: 1}),)),
        node_room(own_cards=INSTANCES, offered={MIG: 3}),
    ),
]


@pytest.mark.parametrize(
    ("expected", "template", "pods", "node"), [each[1:] for each in ROOM], ids=[n[0] for n in ROOM]
)
def test_room_is_as_each_scheduler_counts(
    expected: int, template: PodState, pods: tuple[PodState, ...], node: NodeRoom
) -> None:
    """By whole cards, card by card, by memory, by clients, and by places of the node."""
    assert expected == Places(cluster(pods=pods, nodes=[node])).room(template)


def crowd(number: int, *, idle: int | None = None) -> list[OwnerState]:
    """Build as many owners of one card each, so many of them idle."""
    pods = (pod_state("w-0", idle="False"), idle_pod("w-0", minutes=600))
    one = owner_state(pods[0])
    found = []
    for place in range(number):
        key, node = one.key._replace(name=f"w{place}"), f"n{place // 8}"
        pod = pods[idle is None or place < idle]._replace(uid=f"u{place}", owner=key, node=node)
        found.append(one._replace(key=key, uid=f"o{place}", pods=(pod,)))
    return found


def cost(world: ClusterState) -> int:
    return calls(lambda: decide(world, EMPTY, RULES))


def test_a_pass_grows_with_its_owners_alone() -> None:
    """Each of thousands is judged, no busy one touched; ten times as many cost ten times more."""
    decision = decide(cluster(*crowd(5_000, idle=10)), EMPTY, RULES)

    assert 5_000 == len(decision.standings)
    assert {f"w{at}" for at in range(10)} >= {act.key.name for act in decision.acts} != set()
    assert cost(cluster(*crowd(2_000))) < 11 * cost(cluster(*crowd(200)))


@pytest.mark.parametrize(("cards", "expected"), [(1, 32), (8, 0)])
def test_waiters_cost_no_more_than_owners(cards: int, expected: int) -> None:
    """Where 32 pods wait, four times the calls are enough, whether one owner would do or not."""
    jobs = [waiting_pod(f"job-{place}", requests={GPU: cards}) for place in range(32)]
    rooms = [node_room(f"n{place}", offered={GPU: 8}) for place in range(50)]
    world, alone = (cluster(*crowd(400), pods=pods, nodes=rooms) for pods in (jobs, []))
    standings = decide(world, EMPTY, RULES).standings.values()

    assert expected == sum(item.contended for item in standings)
    assert 4 > cost(world) / cost(alone)
