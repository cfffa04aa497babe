"""
What crosses from program to program comes back as it was written, and noise is refused by name.
"""

import json

from hypothesis import given
from hypothesis import strategies as st

from gpufence.annotations import Headroom
from gpufence.cards import Card, Instance, NodeCards, read_cards, write_cards
from gpufence.dialects import Units
from gpufence.errors import GpufenceError
from gpufence.mode import Mode
from gpufence.names import CARDS
from gpufence.nodes import read_node
from gpufence.plan import ContainerPlan, Done, Plan, Setting, read_plan, write_plan
from gpufence.quantity import LARGEST, MIB
from tests.property.strategies import json_values, noise

_amounts = st.none() | st.integers(0, LARGEST)
_cards = st.builds(
    Card,
    uuid=noise,
    index=st.integers(0, 64),
    model=noise,
    memory_bytes=st.integers(1, LARGEST),
    compute_capability=st.none() | st.tuples(st.integers(0, 20), st.integers(0, 9)),
    mig=st.none() | st.builds(Instance, parent=noise, profile=noise),
    most_bytes=st.none(),  # an agent states what it has measured, no bounds
)
_settings = st.builds(
    Setting,
    env=noise,
    slot=noise,
    form=st.sampled_from(["fraction", "bytes", "julia"]),
    done=st.sampled_from(Done),
    user=st.none() | noise,
    limit_bytes=_amounts,
    reserve_bytes=_amounts,
    card_bytes=_amounts,
    allowance_bytes=_amounts,
)
_containers = st.builds(
    ContainerPlan,
    limit_bytes=_amounts,
    processes=st.integers(1, 9),
    headroom=st.sampled_from(Headroom),
    cap_bytes=st.none() | st.integers(0, 10**6).map(lambda value: value * MIB),
    settings=st.lists(_settings, max_size=2).map(tuple),
)


@given(
    st.builds(
        NodeCards,
        driver=noise,
        observed=noise,
        cards=st.lists(_cards, max_size=3).map(tuple),
        units=st.dictionaries(noise, noise, max_size=2).map(
            lambda said: tuple(sorted(said.items()))
        ),
        factor=st.none() | st.integers(1, 1000),
    )
)
def test_cards_survive_the_round_trip(said: NodeCards) -> None:
    """A node's cards read back as they were written."""
    assert said == read_cards(write_cards(said))


@given(
    st.builds(
        Plan,
        mode=st.sampled_from(Mode),
        dialect=noise,
        limit_bytes=_amounts,
        containers=st.dictionaries(noise, _containers, max_size=2),
        namespace=st.dictionaries(noise, noise, max_size=2),
    )
)
def test_plans_survive_the_round_trip(plan: Plan) -> None:
    """A plan reads back as it was written."""
    assert plan == read_plan(write_plan(plan))


@given(json_values | noise)
def test_noise_in_our_annotations_is_refused_by_name(value: object) -> None:
    """Whatever stands in one of our annotations is read or refused; nothing else escapes."""
    for text in (json.dumps(value), str(value), json.dumps({"v": 1, "cards": value})):
        for read in (read_cards, read_plan):
            try:
                read(text)
            except GpufenceError as error:
                assert "gpufence.io/" in str(error)


@given(json_values)
def test_noise_on_a_node_counts_as_not_said(value: object) -> None:
    """A node whose labels and annotations are noise is still a node that offers its resources."""
    node = read_node(
        {
            "metadata": {"name": "n", "annotations": {CARDS: value}},
            "status": {"allocatable": {"nvidia.com/gpu": "1", "aliyun.com/gpu-mem": value}},
        },
        Units(),
    )

    assert node is not None
    assert "nvidia.com/gpu" in node.resources
