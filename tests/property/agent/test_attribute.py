"""What holds for attribution whatever the lists show."""

from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from agent.attribute import attribute
from agent.model.pod import pods_on_node
from agent.model.sample import Sample
from agent.model.use import MPS_SERVER
from gpufence.quantity import GIB
from tests.support.agent.builders import card_sample, occupant, pod, process_of

PODS = [pod("a", "main", "aside"), pod("b")]
PEOPLE = [
    process_of(PODS[0], 1),
    process_of(PODS[0], 2, "aside"),
    process_of(PODS[1], 3),
    process_of(PODS[0], 1, command=MPS_SERVER),
    process_of(PODS[1], 1, started=-1.0),
    process_of(PODS[1], 2, started=5.0),
    occupant(4, None, None, command=MPS_SERVER),
]
Look: TypeAlias = tuple[dict[int, int | None] | None, list[int], bool, frozenset[int]]

lists = st.dictionaries(st.integers(1, 4), st.sampled_from([None, 1, GIB]), max_size=4)
looks = st.lists(
    st.tuples(
        st.none() | lists,
        st.lists(st.integers(0, len(PEOPLE) - 1), max_size=3),
        st.booleans(),
        st.just(frozenset[int]()) | st.frozensets(st.integers(1, 4)),
    ),
    max_size=12,
)


@given(looks)
def test_what_is_handed_on_is_what_would_be_found_anew(history: list[Look]) -> None:
    """
    While the index of pods stays, attribution hands on what has not changed: the outcome is that of
    an index that is made anew for every look.
    """
    kept = pods_on_node(PODS)
    quick = slow = None
    sample = card_sample(0, {})
    for at, (held, people, renewed, mps) in enumerate(history):
        if renewed:
            sample = card_sample(0, held, at=at, mps=mps)
        living = {PEOPLE[number].pid: PEOPLE[number] for number in people}
        seen = Sample(at, (sample,))
        quick = attribute(seen, living, kept, quick)
        slow = attribute(seen, living, pods_on_node(PODS), slow)

        assert slow.cards == quick.cards
