"""What holds for the judge whatever happens on a card."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from agent.events.episodes import MOST_CHARACTERS, NO_EPISODES, Damping, damped
from agent.events.notices import NOTHING_ANNOUNCED, new_notices
from agent.model.decision import Outcome
from gpufence.mode import Mode
from gpufence.quantity import GIB, MIB
from tests.property.agent.strategies import (
    POLICY,
    Life,
    alone,
    amounts,
    at_the_margin,
    histories,
    lived,
    unknown,
)
from tests.support.agent.builders import LIMIT, pod
from tests.support.agent.world import World
from tests.support.running import examples

lives = histories(amounts | unknown)
known_lives = histories(amounts)
FEW = examples(30)


@FEW
@given(lives)
def test_nobody_within_the_limit_goes(life: Life) -> None:
    """
    Whoever goes was over the limit for certain in that very second, listed and known, fenced,
    enforced, and in mode evict.
    """
    for act in lived(life).acts:
        item, used = life.pods[act.pod], life.holds[act.second][act.pod]

        assert used is not None
        assert used > LIMIT + 64 * MIB
        assert not life.unlisted[act.second]
        assert (Mode.EVICT, "", True) == (item.mode, item.exempt, item.enforced)


@FEW
@given(lives)
def test_a_tolerated_pod_goes_only_while_hardly_any_is_free(life: Life) -> None:
    """
    Who goes with less above his limit than the margin for evictions was on a card below the floor.
    """
    for act in lived(life).acts:
        used, free = life.holds[act.second][act.pod], life.free[act.second]
        if used is not None and used <= LIMIT + 256 * MIB:
            assert free is not None
            assert free < 512 * MIB


@FEW
@given(lives)
def test_what_is_owed_fits_the_card(life: Life) -> None:
    """No more is owed than what the card has beside what is held within limits."""
    world = lived(life)
    assert world.use is not None
    for card in world.use.cards.values():
        held = sum(
            min(use.used_bytes or 0, LIMIT)
            for use in card.pods.values()
            if use.pod.promise_on(card.card.uuid)
        )

        owed = world.decision.findings[card.card.uuid].owed_bytes
        assert card.memory is None or 0 <= owed <= max(card.memory.total_bytes - held, 0)


@FEW
@given(lives)
def test_nobody_goes_alone_for_what_nobody_knows(life: Life) -> None:
    """With every figure unknown nobody ever goes."""
    silent = [dict.fromkeys(holds) for holds in life.holds]

    assert [] == lived(replace(life, holds=silent)).acts


@FEW
@given(lives, st.data())
def test_order_does_not_matter(life: Life, data: st.DataObject) -> None:
    """The order in which pods and processes come in changes no decision."""
    order = data.draw(st.permutations(list(life.pods)))
    one, other = lived(life), lived(life, order=tuple(order))

    assert one.acts == other.acts
    assert [(item.pod.name, item.outcome) for item in one.decision.verdicts] == [
        (item.pod.name, item.outcome) for item in other.decision.verdicts
    ]


@FEW
@given(known_lives, st.lists(st.integers(0, GIB), min_size=24, max_size=24))
@example(at_the_margin(), [int(second == 14) for second in range(24)])
def test_more_use_never_goes_later(life: Life, more: list[int]) -> None:
    """A pod that holds more, second for second, goes no later."""
    less = alone(life)
    name = min(less.pods)
    greater = replace(
        less,
        holds=[
            {**holds, name: (holds[name] or 0) + extra}
            for holds, extra in zip(less.holds, more, strict=True)
        ],
    )
    first = [act.second for act in lived(less).acts[:1]]
    earlier = [act.second for act in lived(greater).acts[:1]]
    if first:
        assert earlier
        assert earlier <= first


@FEW
@given(known_lives, st.lists(st.integers(0, GIB), min_size=24, max_size=24))
def test_a_lower_limit_never_goes_later(life: Life, less: list[int]) -> None:
    """A pod whose limit is lower, second for second and however it moves, goes no later."""
    ours = alone(life)
    first = [act.second for act in lived(ours).acts[:1]]
    earlier = [act.second for act in lived(ours, limits=[LIMIT - each for each in less]).acts[:1]]
    if first:
        assert earlier
        assert earlier <= first


@FEW
@given(known_lives, st.lists(st.integers(GIB, 2 * LIMIT), min_size=24, max_size=24))
def test_nobody_goes_within_the_limit_of_that_second(life: Life, limits: list[int]) -> None:
    """Whoever goes was over the limit that applied in that very second, however it moves."""
    ours = alone(life)
    for act in lived(ours, limits=limits).acts:
        used = ours.holds[act.second][act.pod]

        assert used is not None
        assert used > limits[act.second] + 64 * MIB


@FEW
@given(lives)
def test_one_pod_for_each_card_and_pass(life: Life) -> None:
    """No two pods go in the same second on the same card."""
    seconds = [act.second for act in lived(life).acts]

    assert sorted(set(seconds)) == seconds


@FEW
@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), min_size=2, max_size=6),
    st.integers(0, 9),
    st.tuples(st.integers(1, 4), st.integers(1, 3)),
)
def test_acts_without_an_answer_count(
    pods: list[tuple[str, int]], answers_after: int, caps: tuple[int, int]
) -> None:
    """
    However late the API server answers, no more pods go than the caps allow while no card is short,
    and nobody goes on a card where an act is under way.
    """
    policy = replace(
        POLICY, node_evictions_per_minute=caps[0], namespace_evictions_per_minute=caps[1]
    )
    world = World(policy=policy, cards=3, leaves_after=3, answers_after=answers_after)
    for number, (namespace, card) in enumerate(pods):
        world.add(pod(f"{number}", namespace=namespace, limit=GIB), 2 * GIB, card=card)
    acts = [(act.second, *pods[int(act.pod)]) for act in world.run(40)]
    of_namespace = Counter(namespace for _, namespace, _ in acts)

    assert 0 < len(acts) <= caps[0]
    assert max(of_namespace.values()) <= caps[1]
    for (one, _, here), (other, _, there) in combinations(acts, 2):
        assert here != there or other >= one + max(answers_after, 1)


@FEW
@given(lives)
def test_every_fenced_pod_has_a_verdict(life: Life) -> None:
    """
    Each fenced pod that is still there has verdicts, others have none; who is unknown says so.
    """
    world = lived(life)
    judged = {item.pod.name for item in world.decision.verdicts}

    assert {item.name for item in world.pods.values() if item.mode is not None} == judged
    for verdict in world.decision.verdicts:
        if verdict.use is not None and verdict.use.used_bytes is None:
            assert Outcome.UNKNOWN is verdict.outcome


@FEW
@given(lives)
def test_whatever_is_said_fits(life: Life) -> None:
    """Every message is one printable line that an Event can hold."""
    world = lived(life)
    due = new_notices(NOTHING_ANNOUNCED, world.decision, "n1")[1]
    writes, _ = damped(NO_EPISODES, due, 0.0, Damping())

    assert all(item.message.isprintable() for item in due)
    assert all(len(item.message) <= MOST_CHARACTERS for item in due)
    assert len(writes) == len({(item.reason, item.regarding, item.topic) for item in due})
