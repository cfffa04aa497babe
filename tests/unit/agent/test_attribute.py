"""Whose memory is whose."""

from dataclasses import replace

import pytest

from agent.model.pod import PodOnNode, pods_on_node
from agent.model.sample import CardSample, GpuProcess, ProcessList, merged
from agent.model.use import Observation, Occupant, PodOnCard
from gpufence.quantity import GIB, MIB
from tests.support.agent.builders import (
    CARDS,
    card_sample,
    container_id,
    occupant,
    on_card,
    pod,
    process_of,
    uses,
)

UUID = CARDS[0].uuid
A = pod("a")


def counted(use: PodOnCard | None) -> int | None:
    assert use is not None
    return use.counted_bytes


def test_lists_are_merged_by_the_largest_figure() -> None:
    """A PID in several lists, or twice in one, holds the most that any of them says."""
    compute = [GpuProcess(2, 100), GpuProcess(1, 7), GpuProcess(1, 9)]

    assert (GpuProcess(1, 9), GpuProcess(2, 200)) == merged(compute, [GpuProcess(2, 200)])


@pytest.mark.parametrize(
    ("figures", "least"),
    [((None, 5), 5), ((5, None), 5), ((3, None, 7), 7), ((None, 0), 0), ((None, None), 0)],
)
def test_unknown_in_one_list_is_unknown(figures: tuple[int | None, ...], least: int) -> None:
    """A figure missing in any list makes that process unknown, and another one is its least."""
    expected = (GpuProcess(1, None, least),)

    assert expected == merged(*([GpuProcess(1, item)] for item in figures))


def test_a_figure_of_one_list_stays_certain() -> None:
    """What one list says of a process counts while another one says nothing of it."""
    processes = merged([GpuProcess(1, 2 * GIB), GpuProcess(2, GIB)], [GpuProcess(1, None)])
    sample = replace(card_sample(0, {}), processes=ProcessList(0.0, processes))
    use = uses([sample], [process_of(A, 1), process_of(A, 2)], [A]).cards[UUID].pods[A.uid]

    assert (None, 3 * GIB, {"main": 3 * GIB}) == (
        use.used_bytes,
        use.counted_bytes,
        use.containers,
    )


def test_churn_counts() -> None:
    """
    A process that started before a list and lived after it counts, in the first list and in each
    after it, be it the same, renamed, or another one each time.
    """
    look = None
    for pid in (1, 1, 2, 3, 4, 4):
        at = 1.0 if look is None else look.sample.taken_at + 1.0
        process = process_of(A, pid, started=pid + 0.2 if pid > 1 else -500.0, command=f"at {at}")
        look = uses([card_sample(0, {pid: GIB}, at=at)], [process], [A], look, at=at)
        use = look.cards[UUID].pods[A.uid]

        assert (GIB, GIB) == (use.used_bytes, use.counted_bytes)


def test_list_that_was_not_renewed_confirms_nothing() -> None:
    """The same list twice is one list: who was doubtful there stays so."""
    first = uses([card_sample(0, {1: GIB})], [process_of(A)], [A])
    reused = [process_of(A, started=-100.0)]
    second = uses([card_sample(0, {1: GIB}, at=1)], reused, [A], first, at=1)
    third = uses([card_sample(0, {1: GIB}, at=1)], [], [A], second, at=2)

    assert 0 == counted(third.cards[UUID].pods[A.uid])


def test_list_that_was_not_renewed_meets_the_pods_of_today() -> None:
    """A pod that the API server shows only now owns what an older list has shown."""
    first = uses([card_sample(0, {1: GIB})], [process_of(A)], [])
    second = uses([card_sample(0, {1: GIB})], [], [A], first, at=1)

    assert GIB == first.cards[UUID].unattributed_bytes
    assert GIB == second.cards[UUID].pods[A.uid].used_bytes
    assert 0 == second.cards[UUID].unattributed_bytes


def test_missing_list_makes_use_unknown() -> None:
    """
    What held memory before a list went missing holds an unknown amount, not nothing, unless it is
    gone; the next list is a first one, and speaks for itself.
    """
    first = uses([card_sample(0, {1: GIB})], [process_of(A)], [A])
    gap = uses([card_sample(0, None, at=1)], [], [A], first, at=1)
    third = uses([card_sample(0, {1: GIB}, at=2)], [process_of(A)], [A], gap, at=2)

    assert {A.uid: on_card(A, None)} == gap.cards[UUID].pods
    assert (None, None) == (gap.cards[UUID].unattributed_bytes, gap.cards[UUID].unlisted_bytes)
    assert {} == uses([card_sample(0, None, at=1)], [], [], first, at=1).cards[UUID].pods
    assert GIB == counted(third.cards[UUID].pods[A.uid])


@pytest.mark.parametrize(
    "changed",
    [
        {"started": -100.0},  # another process with the same PID
        {"container": "next"},  # the same process, moved
    ],
)
def test_other_process_under_the_same_pid(changed: dict[str, object]) -> None:
    """A PID that has changed hands between two lists counts from the next one on."""
    item = pod("a", "main", "next")
    first = uses([card_sample(0, {1: GIB})], [process_of(item)], [item])
    replaced = process_of(item, **changed)  # type: ignore[arg-type] # a column
    second = uses([card_sample(0, {1: GIB}, at=1)], [replaced], [item], first, at=1)

    assert 0 == counted(second.cards[UUID].pods[item.uid])


@pytest.mark.parametrize(("started", "expected"), [(9.99, 5), (10.0, 5), (10.01, None)])
def test_process_younger_than_the_list(started: float, expected: int | None) -> None:
    """A process that may have started after the list was made is not the one it names."""
    sample = card_sample(0, {1: 5}, at=10)
    pods = uses([sample], [process_of(A, started=started)], [A], at=10).cards[UUID].pods

    assert expected == (pods[A.uid].used_bytes if pods else None)


def test_unknown_figure_keeps_the_certain_part() -> None:
    """
    With one process without a figure nobody knows what its pod holds in all, only what at least.
    """
    b = pod("b")
    sample = card_sample(0, {1: GIB, 2: None, 3: MIB})
    people = [process_of(A, 1), process_of(A, 2), process_of(b, 3)]
    pods = uses([sample], people, [A, b]).cards[UUID].pods

    assert (None, GIB) == (pods[A.uid].used_bytes, pods[A.uid].counted_bytes)
    assert MIB == pods[b.uid].used_bytes


@pytest.mark.parametrize(
    ("pod_uid", "container"),
    [
        (None, None),  # a process of the host
        ("uid-unknown", container_id("a")),
        (A.uid, None),  # the pod's own cgroup
        (A.uid, container_id("a", "sandbox")),  # a container the API server does not list
        (None, container_id("b")),
    ],
)
def test_unattributed(pod_uid: str | None, container: str | None) -> None:
    """A process is nobody's unless kernel and API server name the same pod and container."""
    sample = card_sample(0, {1: GIB})
    card = uses([sample], [occupant(1, pod_uid, container)], [A]).cards[UUID]
    unknown = uses([card_sample(0, {1: GIB, 2: None})], [], [A]).cards[UUID]

    assert ({}, GIB) == (card.pods, card.unattributed_bytes)
    assert unknown.unattributed_bytes is None


@pytest.mark.parametrize(
    ("item", "process"),
    [
        # The cgroup has the manifest's hash, the API server's mirror of the pod another UID.
        (pod("a", static_uid="0" * 32), process_of(pod("a", static_uid="0" * 32))),
        # A neighbour in the reader's own pod: its path has no UID, only a container.
        (A, occupant(1, None, container_id("a"))),
    ],
)
def test_pods_that_are_found_another_way(item: PodOnNode, process: Occupant) -> None:
    """
    A static pod is found by its manifest's hash, one without a UID in its path by its container.
    """
    assert [item.uid] == list(uses([card_sample(0, {1: 5})], [process], [item]).cards[UUID].pods)


def test_containers_of_a_pod() -> None:
    """What a pod holds is split by container, confirmed processes only."""
    item = pod("a", "main", "aside")
    people = [process_of(item, 1), process_of(item, 2, "aside"), process_of(item, 3, "aside")]
    first = uses([card_sample(0, {1: 1, 2: 2, 3: 4})], people, [item])
    people[2] = process_of(item, 3, "aside", started=-100.0)  # another one's PID by now
    second = uses([card_sample(0, {1: 1, 2: 2, 3: 4}, at=1)], people, [item], first, at=1)

    assert {"main": 1, "aside": 2} == second.cards[UUID].pods[item.uid].containers


@pytest.mark.parametrize(("figure", "expected"), [(GIB, 3 * GIB), (5 * GIB, 0), (None, None)])
def test_memory_that_no_process_shows(figure: int | None, expected: int | None) -> None:
    """The card's own count beyond all listed processes is unlisted, never negative."""
    sample = card_sample(0, {1: figure}, free=CARDS[0].memory_bytes - 4 * GIB)

    assert expected == uses([sample], [], []).cards[UUID].unlisted_bytes


def test_pods_of_one_name_after_another() -> None:
    """The index finds a pod by UID, not by name."""
    pods = pods_on_node([A, pod("a", uid="uid-next", containers={})])

    assert {A.uid, "uid-next"} == set(pods.by_uid)
    assert pods.find(None) is None


UNNAMED = pod("a", containers={})


def seen_unnamed(*looks: float, item: PodOnNode = UNNAMED) -> Observation:
    """Look so many times at a process of a pod whose status does not name its container."""
    look = None
    for at in looks:
        sample = card_sample(0, {1: GIB}, at=at)
        look = uses([sample], [process_of(A)], [item], look, at=at)
    assert look is not None
    return look


def test_a_container_that_no_status_names() -> None:
    """A process in the cgroup of a pod is the pod's once no status has named it for 30 s."""
    before, after = (seen_unnamed(0, at).cards[UUID] for at in (29, 30))

    assert ({}, GIB) == (before.pods, before.unattributed_bytes)
    assert (GIB, 0) == (counted(after.pods[A.uid]), after.unattributed_bytes)
    assert [""] == [item.container for item in after.processes]
    stale = seen_unnamed(0, 30, item=pod("a", "before"))  # a container that was started anew
    assert GIB == counted(stale.cards[UUID].pods[A.uid])


def test_letting_go_starts_nothing_anew() -> None:
    """Time without a name goes on while nothing is held."""
    first = seen_unnamed(0)
    gap = uses([card_sample(0, {}, at=15)], [], [UNNAMED], first, at=15)
    last = uses([card_sample(0, {1: GIB}, at=30)], [process_of(A)], [UNNAMED], gap, at=30)

    assert GIB == counted(last.cards[UUID].pods[A.uid])


def test_a_name_that_comes_late() -> None:
    """Once its status names the container, it is that container's."""
    last = uses([card_sample(0, {1: GIB}, at=31)], [process_of(A)], [A], seen_unnamed(0, 30), at=31)

    assert ["main"] == [item.container for item in last.cards[UUID].processes]
    assert {} == last.unnamed


def test_pods_of_other_nodes_own_nothing_here() -> None:
    """A UID that is no pod's of this node never makes anybody an owner."""
    other = pod("b")
    first = uses([card_sample(0, {1: GIB})], [process_of(A)], [other])
    last = uses([card_sample(0, {1: GIB}, at=60)], [process_of(A)], [other], first, at=60)

    assert GIB == last.cards[UUID].unattributed_bytes
    assert {} == last.unnamed


def left(observation: Observation) -> dict[int, str]:
    return {item.pid: owner.name for item, owner in observation.cards[UUID].left}


def looks(*looks: tuple[list[CardSample], list[Occupant], list[PodOnNode]]) -> Observation:
    """Attribute several looks, one after another."""
    before: Observation | None = None
    for samples, occupants, pods in looks:
        before = uses(samples, occupants, pods, before)
    assert before is not None
    return before


FIRST = ([card_sample(0, {1: GIB, 2: GIB})], [process_of(A, 1), process_of(A, 2)], [A])
DEAD = [card_sample(0, {1: GIB, 2: GIB}, at=1.0)]
REUSED = occupant(1, None, None, started=0.5)


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([(DEAD, [process_of(A, 2)], [A])], {1: "a"}),
        ([(DEAD, [], [])], {1: "a", 2: "a"}),
        ([(FIRST[0], [], [])], {1: "a", 2: "a"}),
        ([(DEAD, [], []), (DEAD, [], [A]), ([card_sample(0, {2: GIB}, at=2.0)], [], [])], {2: "a"}),
        ([([card_sample()], [], [A]), ([card_sample()], [], []), (DEAD, [], [])], {1: "a", 2: "a"}),
        ([(DEAD, [REUSED], [])], {2: "a"}),
        ([(DEAD, [], []), ([card_sample(0, {1: GIB}, at=2.0)], [REUSED], [])], {}),
        ([([card_sample(0, {1: GIB, 9: GIB}, at=1.0)], [], [A])], {1: "a"}),
    ],
    ids=[
        *("one process ended", "the pod is gone", "gone before the next list", "forgotten in turn"),
        *("through a blind while", "reused at once", "reused later", "never any pod's"),
    ],
)
def test_what_a_card_lists_for_a_dead_process_is_known_to_be_its_pods(
    later: list[tuple[list[CardSample], list[Occupant], list[PodOnNode]]], expected: dict[int, str]
) -> None:
    """As long as the card lists it, and only while no other process has its PID."""
    assert expected == left(looks(FIRST, *later))


def test_what_ended_pods_leave_is_added_up() -> None:
    """Nothing is left where all lives, and unknown where the list is."""
    assert 2 * GIB == looks(FIRST, (DEAD, [], [])).cards[UUID].left_bytes
    assert 0 == looks(FIRST).cards[UUID].left_bytes
    assert None is looks(FIRST, ([card_sample()], [], [])).cards[UUID].left_bytes
