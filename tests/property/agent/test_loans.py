"""What holds of loans, whatever pods hold, free and do."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.judge.time import ASKED_SECONDS
from agent.model.pod import PodLimit
from gpufence.quantity import GIB, MIB
from tests.property.agent.strategies import POLICY
from tests.support.agent.builders import CARDS, pod
from tests.support.agent.world import World
from tests.support.builders import T4_BYTES
from tests.support.running import examples

REQUEST, MOST, PROMISED = 3 * GIB, 12 * GIB, 6 * GIB
MARGIN = 256 * MIB
QUICK = replace(POLICY, give_back_seconds=4.0, lend_after_seconds=20.0)
UUID = CARDS[0].uuid
SECONDS = 24
FEW = examples(30)

held = st.lists(
    st.sampled_from([0, GIB, REQUEST, REQUEST + MARGIN, 4 * GIB, 7 * GIB, 9 * GIB, MOST]),
    min_size=SECONDS,
    max_size=SECONDS,
)
lenders = st.lists(
    st.sampled_from([0, GIB, GIB + 65 * MIB, 3 * GIB, PROMISED]), min_size=SECONDS, max_size=SECONDS
)
turns = st.lists(
    st.tuples(st.integers(1, 2), st.sampled_from([1, 20, 58, 62, 90])), min_size=2, max_size=5
)
idle = st.lists(st.sampled_from([None, 0.0, 10.0, 30.0]), min_size=SECONDS, max_size=SECONDS)


def lived(
    first: list[int], second: list[int], lender: list[int], idle_for: list[float | None]
) -> tuple[World, list[int]]:
    """Let two pods borrow beside a lender; return the world, and what was free at each second."""
    world = World(QUICK, cards=1, leaves_after=3)
    for name in ("a", "c"):
        world.add(pod(name, limits={UUID: PodLimit(MOST, share_bytes=REQUEST)}))
    world.add(pod("b", limit=PROMISED, namespace="team-b")).settle_in()
    free = []
    for now in range(SECONDS):
        left = T4_BYTES
        for name, wanted in (("b", lender[now]), ("a", first[now]), ("c", second[now])):
            if name in world.pods:
                world.hold(name, min(wanted, left))
                left -= min(wanted, left)
        seconds = idle_for[now]
        world.idle = {} if seconds is None else {"b": seconds}
        free.append(left)
        world.run(now + 1)
    return world, free


@FEW
@given(held, held, lenders, idle)
def test_a_pod_goes_only_for_what_is_missed(
    first: list[int], second: list[int], lender: list[int], idle_for: list[float | None]
) -> None:
    """
    A pod that goes is above its request by more than the margin, while a pod that is not idle lacks
    what is reserved for it, or hardly anything is free.
    """
    world, free = lived(first, second, lender, idle_for)
    for act in world.acts:
        used = {"a": first, "c": second}[act.pod][act.second]
        others = [each[act.second] for name, each in (("a", first), ("c", second))]
        reserved = PROMISED - lender[act.second] + sum(max(REQUEST - each, 0) for each in others)

        assert used > REQUEST + MARGIN
        assert free[act.second] < max(reserved, QUICK.short_floor_bytes)


@FEW
@given(st.integers(0, SECONDS - 8), st.sampled_from([9 * GIB, 10 * GIB, MOST]))
def test_a_lender_waits_no_longer_than_is_said(begins: int, taken: int) -> None:
    """A lender that is not idle has its memory back in the time to give back, and a look."""
    first = [GIB] * begins + [taken] * (SECONDS - begins)
    world, _ = lived(first, [0] * SECONDS, [GIB] * SECONDS, [None] * SECONDS)
    world.run(SECONDS + 1)

    assert [begins + QUICK.give_back_seconds] == [act.second for act in world.acts]


@FEW
@given(held, st.integers(1, 3))
def test_one_that_gives_back_in_time_stays(first: list[int], late: int) -> None:
    """A pod that gives back whenever it is asked, in time for all of a minute, is never evicted."""
    taken = [REQUEST if each <= REQUEST else 9 * GIB for each in first]
    asked = 0
    for now, used in enumerate(taken):
        asked += used > REQUEST
        taken[now] = REQUEST if asked > late else used
    world, _ = lived(taken, [0] * SECONDS, [GIB] * SECONDS, [None] * SECONDS)

    assert [] == world.acts


@FEW
@given(turns)
def test_a_borrower_is_not_asked_twice_within_a_minute(turns: list[tuple[int, int]]) -> None:
    """
    A borrower is asked while others miss what it holds, and a demand that comes back within a
    minute is the same: what was left of its time is left, and only later ones begin anew.
    """
    world = World(QUICK, cards=1).add(pod("a", limits={UUID: PodLimit(MOST, share_bytes=REQUEST)}))
    world.add(pod("b", limit=PROMISED, namespace="team-b"), GIB).settle_in()
    left, last = QUICK.give_back_seconds, -ASKED_SECONDS
    for taken, rested in turns:
        for used in [10 * GIB] * taken + [REQUEST] * rested:
            world.hold("a", used).run(world.now + 1)
            if "a" not in world.pods or world.acts:
                assert left <= 0
                return
            (verdict,) = (item for item in world.decision.verdicts if item.pod.name == "a")
            now = world.now - 1

            assert verdict.recalled is (used > REQUEST)
            if verdict.recalled:
                if now - last >= ASKED_SECONDS:
                    left = QUICK.give_back_seconds
                assert left == verdict.due_seconds
                last = now
                left -= 1.0
