"""Who waits, and whose release would let them in."""

from collections.abc import Callable, Iterable
from cProfile import Profile
from pstats import Stats
from typing import Any

import pytest

from controller.decide import decide
from controller.model import (
    ClusterState,
    NodeRoom,
    OwnerState,
    PodState,
    ReleaseMemory,
    ReleaseRules,
)
from gpufence import names
from gpufence.idle import ReleaseNote, ReleasePhase, WakeBy
from tests.support.release import (
    NOW,
    WORDS,
    cluster,
    idle_pod,
    node_room,
    noted,
    owner_state,
    pod_state,
    waiting_pod,
)

RULES = ReleaseRules()
GPU, GPUSHARE = names.NVIDIA_GPU, names.GPUSHARE_MEMORY
Made = Callable[..., PodState]
NOTE = ReleaseNote(ReleasePhase.RELEASED, NOW - 600, 1, "idle")


def worker(name: str, *, cards: int = 1, node: str = "node-1") -> OwnerState:
    return owner_state(idle_pod(f"{name}-0", requests={GPU: cards}, node=node), name=name)


def shared(name: str, units: int, card: int, made: Made = pod_state) -> PodState:
    """Build a pod of gpushare on one card."""
    index = {"ALIYUN_COM_GPU_MEM_IDX": str(card)}
    return made(name, requests={GPUSHARE: units}, annotations=index)


def asked_to_go(world: ClusterState) -> list[tuple[str, str]]:
    """Return which pod waits, and which owner's GPUs it waits for."""
    standings = decide(world, ReleaseMemory(), RULES).standings.values()
    return sorted(
        (waiter.partition("/")[2], each.key.name) for each in standings for waiter in each.waiters
    )


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),
        ({"seconds": 29.0}, False),
        ({"waiting_since": None}, False),
        ({"terminating": True}, False),
        ({"gpu": None}, False),
        ({"node": "node-1"}, False),
    ],
)
def test_a_pod_waits_that_no_node_takes(*, changes: dict[str, Any], waits: bool) -> None:
    """A pod counts that asks for a GPU and has waited for half a minute."""
    world = cluster(worker("a"), pods=[waiting_pod(**changes)], nodes=[node_room(cards=1)])

    assert ([("job-0", "a")] if waits else []) == asked_to_go(world)


def test_the_pod_that_has_waited_longest_comes_first() -> None:
    """The order of waiters is that of their waiting."""
    pods = [waiting_pod("late", seconds=60), waiting_pod("early", seconds=90)]

    assert [("early", "a")] == asked_to_go(
        cluster(worker("a"), pods=pods, nodes=[node_room(cards=1)])
    )


def test_whoever_fits_waits_for_nobody() -> None:
    """Where there is room, a scheduler that is slow is no reason to release anybody."""
    assert [] == asked_to_go(cluster(worker("a"), pods=[waiting_pod()]))


def test_a_waiter_that_fits_takes_room_on_one_card() -> None:
    """It gets the card on which the least is left, so that the next one fits beside it."""
    node = node_room(offered={GPUSHARE: 48, names.GPUSHARE_COUNT: 3})
    idle = owner_state(shared("a-0", 16, 2, idle_pod), name="a")
    busy = (shared("b", 12, 0), shared("c", 6, 1))
    first = waiting_pod("first", seconds=90, requests={GPUSHARE: 4})
    second = waiting_pod("second", seconds=60, requests={GPUSHARE: 10})

    assert [] == asked_to_go(cluster(idle, pods=[*busy, first, second], nodes=[node]))


def test_an_idle_owner_is_in_the_way() -> None:
    """A job that needs both cards waits for the worker on one of them where the other is free."""
    job = waiting_pod(requests={GPU: 2})

    assert [("job-0", "a")] == asked_to_go(cluster(worker("a"), pods=[job]))


def test_a_busy_neighbour_makes_a_release_useless() -> None:
    """Who would not fit even then waits for nobody."""
    world = cluster(worker("a"), pods=[pod_state("busy"), waiting_pod(requests={GPU: 2})])

    assert [] == asked_to_go(world)


def test_one_owner_must_be_enough() -> None:
    """One owner with two cards is asked, and two with one each are not, who help together alone."""
    nodes = [node_room("node-1"), node_room("node-2")]
    owners = (worker("a"), worker("b"), worker("c", cards=2, node="node-2"))
    job = waiting_pod(requests={GPU: 2})

    assert [("job-0", "c")] == asked_to_go(cluster(*owners, pods=[job], nodes=nodes))
    assert [] == asked_to_go(cluster(*owners[:2], pods=[job], nodes=nodes[:1]))


def test_what_an_owner_has_elsewhere_is_of_no_use() -> None:
    """A job needs its cards on one node."""
    wide = owner_state(idle_pod("w-0"), idle_pod("w-1", node="node-2"), name="wide")
    nodes = [node_room(name, cards=1) for name in ("node-1", "node-2")]
    job = waiting_pod(requests={GPU: 2})

    assert [] == asked_to_go(cluster(wide, pods=[job], nodes=nodes))


def test_only_gpus_count() -> None:
    """Where cards are free, a pod that waits for something else waits for nobody's GPUs."""
    full = node_room(offered={GPU: 1, "pods": 1})
    free = node_room(offered={GPU: 2})

    assert [("job-0", "a")] == asked_to_go(cluster(worker("a"), pods=[waiting_pod()], nodes=[full]))
    assert [] == asked_to_go(cluster(worker("a"), pods=[waiting_pod()], nodes=[free]))


def test_of_equal_ones_the_first_goes() -> None:
    """That is the one that has been idle longest."""
    longer = owner_state(idle_pod("b-0", minutes=60), name="b")

    assert [("job-0", "a")] == asked_to_go(cluster(worker("a"), worker("b"), pods=[waiting_pod()]))
    assert [("job-0", "b")] == asked_to_go(cluster(worker("a"), longer, pods=[waiting_pod()]))


def test_fewer_pods_go_before_more() -> None:
    """Of owners that would do, the one with fewer pods goes."""
    wide = owner_state(idle_pod("w-0"), idle_pod("w-1", node="node-2"), name="wide")
    nodes = [node_room("node-1", cards=1), node_room("node-2", cards=2)]
    world = cluster(wide, worker("a", node="node-2"), pods=[waiting_pod()], nodes=nodes)

    assert [("job-0", "a")] == asked_to_go(world)


def test_each_waiter_needs_its_own() -> None:
    """What one waiter gets is not promised to the next; what is left over is."""
    pods = [waiting_pod("one", seconds=90), waiting_pod("two", seconds=60)]
    two = cluster(worker("a"), worker("b"), pods=pods)
    wide = cluster(worker("a", cards=2), pods=pods)

    assert [("one", "a"), ("two", "b")] == asked_to_go(two)
    assert [("one", "a")] == asked_to_go(wide)


def test_nobody_goes_for_himself() -> None:
    """A replica that waits does not ask its own siblings to go."""
    owner = owner_state(idle_pod("a-0"), waiting_pod("a-1", namespace="team-a"), name="a")
    world = cluster(owner, nodes=[node_room(cards=1)])

    assert [] == asked_to_go(world)


@pytest.mark.parametrize(
    "changes", [{"placement": "a required pod affinity"}, {"spec": {"resourceClaims": [{}]}}]
)
def test_nobody_goes_for_those_whose_place_is_not_worked_out(changes: dict[str, Any]) -> None:
    """Whether a release would help such a pod nobody knows."""
    world = cluster(worker("a"), worker("b"), pods=[waiting_pod(**changes)])

    assert [] == asked_to_go(world)


def test_a_place_that_is_about_to_be_free_is_enough() -> None:
    """While somebody leaves, nobody else goes for the same waiter."""
    leaving = worker("a")._replace(note=NOTE._replace(phase=ReleasePhase.RELEASING))
    ended = worker("a")._replace(replicas=0)
    ending = owner_state(idle_pod("a-0", terminating=True), name="a")
    for gone in (leaving, ended, ending):
        world = cluster(gone, worker("b"), pods=[waiting_pod()])

        assert [] == asked_to_go(world)


def test_a_node_must_take_the_waiter() -> None:
    """Who may not run on a node is not let in by anybody there."""
    world = cluster(worker("a"), pods=[waiting_pod(requests={GPU: 2}, node="")])
    other = cluster(
        worker("a"),
        pods=[waiting_pod(requests={GPU: 2}, spec={"nodeSelector": {"zone": "b"}})],
    )

    assert [("job-0", "a")] == asked_to_go(world)
    assert [] == asked_to_go(other)


def test_a_node_must_offer_what_is_asked() -> None:
    """
    What a node does not list helps nobody; HAMi's memory, which its own scheduler counts, is of no
    hindrance.
    """
    shared, hami = {GPUSHARE: 1}, {GPU: 2, names.HAMI_MEMORY: 6144}

    assert [] == asked_to_go(cluster(worker("a"), pods=[waiting_pod(requests=shared)]))
    assert [("job-0", "a")] == asked_to_go(cluster(worker("a"), pods=[waiting_pod(requests=hami)]))


def test_pods_of_unknown_nodes_are_passed_over() -> None:
    """An owner may have pods on nodes that are no GPU nodes of this cluster any longer."""
    owner = owner_state(idle_pod("a-0"), idle_pod("a-1", node="gone"), name="a")
    job = waiting_pod(requests={GPU: 2})

    assert [("job-0", "a")] == asked_to_go(cluster(owner, pods=[job]))


def test_a_pod_that_ends_is_counted_once() -> None:
    """A place that is free already is not given twice."""
    ending = idle_pod("a-0", terminating=True)
    owner = owner_state(ending, idle_pod("a-1"), name="a")
    four, three = waiting_pod(requests={GPU: 4}), waiting_pod(requests={GPU: 3})
    node = node_room(cards=4, offered={GPU: 4})

    assert [] == asked_to_go(cluster(owner, worker("b"), pods=[four], nodes=[node]))
    assert [("job-0", "b")] == asked_to_go(cluster(owner, worker("b"), pods=[three], nodes=[node]))


def test_who_cannot_go_is_named_last_and_gives_nothing() -> None:
    """A pod that only a kept owner would let in waits for it, and its place is not dealt out."""
    first, second = waiting_pod("one", seconds=90, requests={GPU: 2}), waiting_pod("two")
    words = WORDS._replace(keep_until=NOW + 60)
    kept = worker("kept", cards=2, node="node-2")._replace(words=words)
    able = worker("able")
    nodes = [node_room("node-1", cards=1), node_room("node-2")]
    world = cluster(kept, able, pods=[first, second], nodes=nodes)

    assert [("one", "kept"), ("two", "able")] == asked_to_go(world)


def test_what_helps_no_replica_helps_none_of_its_siblings() -> None:
    """Of many alike that wait for what is not there, one is looked at."""
    jobs = [waiting_pod(f"job-{place}", requests={GPU: 9}, seconds=90) for place in range(3)]
    small = waiting_pod("small", seconds=60)
    world = cluster(worker("a"), worker("b"), pods=[*jobs, small])

    assert [("small", "a")] == asked_to_go(world)


def test_gpushare_needs_one_card() -> None:
    """
    Two idle owners on different cards are of no use together; the one whose card gets room is.
    """
    node = node_room(offered={GPUSHARE: 32, names.GPUSHARE_COUNT: 2})
    owners = [
        owner_state(
            idle_pod(
                f"{name}-0",
                requests={GPUSHARE: units},
                annotations={"ALIYUN_COM_GPU_MEM_IDX": index},
            ),
            name=name,
        )
        for name, units, index in (("a", 6, "0"), ("b", 6, "1"))
    ]
    rest = [
        pod_state(
            f"rest-{index}",
            requests={GPUSHARE: units},
            annotations={"ALIYUN_COM_GPU_MEM_IDX": index},
        )
        for index, units in (("0", 8), ("1", 6))
    ]
    big, small = (
        waiting_pod("big", requests={GPUSHARE: 10}),
        waiting_pod("small", requests={GPUSHARE: 2}),
    )
    free = cluster(*owners, pods=[*rest, small, big], nodes=[node])

    assert [("big", "b")] == asked_to_go(free)


def back(owner: OwnerState, *pods: PodState, nodes: Iterable[NodeRoom] | None = None) -> str:
    """Return what stands against bringing an owner back."""
    free = owner._replace(words=WORDS._replace(wake=WakeBy.WHEN_FREE))
    decision = decide(cluster(free, pods=pods, nodes=nodes), ReleaseMemory(), RULES)
    return decision.standings[owner.key].why.partition("not back yet: ")[2]


def crowd(owners: int, cards: int) -> ClusterState:
    """Build as many idle owners of one card each on full nodes, and pods that wait for so many."""
    rooms = [node_room(f"n{place}", offered={GPU: 8}) for place in range(owners // 8)]
    one = worker("w0-0", node="n0")
    (pod,) = one.pods
    idle = []
    for place in range(owners):
        key, node = one.key._replace(name=f"w{place}"), f"n{place % len(rooms)}"
        member = pod._replace(uid=f"u{place}", name=f"w{place}-0", owner=key, node=node)
        idle.append(one._replace(key=key, uid=f"o{place}", pods=(member,)))
    wait = [waiting_pod(f"job-{place}", requests={GPU: cards}) for place in range(32)]
    return cluster(*idle, pods=wait, nodes=rooms)


@pytest.mark.parametrize(("cards", "expected"), [(1, 32), (8, 0)])
def test_waiters_cost_no_more_than_owners(cards: int, expected: int) -> None:
    """
    To decide on a thousand idle owners takes no more than four times as many calls where 32 pods
    wait for their GPUs, whether one of them would be enough or not.
    """
    world = crowd(1000, cards)
    alone = world._replace(pods=tuple(pod for pod in world.pods if pod.node))
    decided = decide(world, ReleaseMemory(), RULES)

    assert expected == sum(item.contended for item in decided.standings.values())
    assert 4 > calls(world) / calls(alone)


def calls(world: ClusterState) -> int:
    """Count the calls of Python's functions in one pass."""
    profile = Profile()
    profile.runcall(decide, world, ReleaseMemory(), RULES)
    return Stats(profile).total_calls  # type: ignore[attr-defined, no-any-return]


def test_a_released_owner_comes_back_where_it_fits() -> None:
    """All its replicas must have room."""
    released = noted(worker("a"), NOTE)
    three = noted(worker("a"), NOTE._replace(replicas=3))

    assert "" == back(released)
    assert "0 of its 1 replicas would fit" == back(released, pod_state("x"), pod_state("y"))
    assert "2 of its 3 replicas would fit" == back(three)


def test_a_released_owner_leaves_its_place_to_those_who_wait() -> None:
    """Who waits for a place that it might take comes first; who can never fit does not count."""
    released = noted(worker("a"), NOTE)
    blocked = "team-b/job-0 waits for a place that it might take"

    assert blocked == back(released, pod_state("x"), waiting_pod(requests={GPU: 2}))
    assert blocked == back(released, waiting_pod(placement="host ports"))
    assert "" == back(released, waiting_pod(requests={GPU: 3}))


def test_a_place_it_may_not_take_is_nobodys_loss() -> None:
    """Who waits for other nodes is not in its way."""
    released = noted(worker("a"), NOTE)
    nodes = [node_room("node-1"), node_room("node-2", labels={"zone": "b"}, cards=4)]
    template = pod_state("t", node="", spec={"nodeSelector": {"zone": "b"}})
    job = waiting_pod(requests={GPU: 2}, spec={"nodeSelector": {"zone": "a"}})

    assert "" == back(released._replace(template=template), job, nodes=nodes)


def test_an_owner_stays_released_of_which_nothing_is_known() -> None:
    """Without a template nobody knows what would fit."""
    released = noted(worker("a"), NOTE)._replace(template=None)

    assert "what its pods would ask for is unknown" == back(released)
