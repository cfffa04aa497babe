"""What is written is read again as it was."""

import json
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import example, given
from hypothesis import strategies as st

from gpufence.annotations import Headroom
from gpufence.cards import Card, Instance, NodeCards, read_cards, write_cards
from gpufence.dialects import Units
from gpufence.errors import GpufenceError, InvalidError, UnknownVersionError
from gpufence.mode import Mode
from gpufence.names import CARDS
from gpufence.need import (
    CardNeed,
    NeedDay,
    NeedKey,
    NodeNeed,
    OwnerNeed,
    bounded,
    read_need,
    summaries,
    write_need,
)
from gpufence.need.codec import MOST_BYTES, MOST_OWNERS
from gpufence.need.levels import MOST_LEVELS
from gpufence.nodes import read_node
from gpufence.plan import ContainerPlan, Done, Plan, Setting, read_plan, write_plan
from gpufence.quantity import LARGEST, MIB
from gpufence.snapshot import Snapshot, read_snapshot, write_snapshot
from tests.property.strategies import json_values, noise
from tests.support.running import examples

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


_FORMS: dict[object, st.SearchStrategy[object]] = {
    str: noise,
    bool: st.booleans(),
    int: st.integers(0, LARGEST),
    float: st.integers(0, 2**40).map(lambda milliseconds: round(milliseconds / 1000, 3)),
}
_SHARES = st.none() | st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)


def rows(kind: object) -> st.SearchStrategy[Any]:
    """Draw rows of a kind in which every field says something, None where that is allowed."""
    if kind in _FORMS:
        return _FORMS[kind]
    inner = [rows(item) for item in get_args(kind) if item not in (type(None), ...)]
    if get_origin(kind) is tuple:
        return st.lists(inner[0], max_size=2).map(tuple)
    if inner:
        return st.none() | inner[0]
    assert isinstance(kind, type)
    fields = {
        name: _SHARES if name.endswith("_share") else rows(form)
        for name, form in get_type_hints(kind).items()
    }
    return st.builds(kind, **fields)


snapshots = rows(Snapshot)


def spoiled(value: Any, path: list[int], noise: object) -> Any:
    """Put noise in the place that `path` leads to."""
    if not path or not isinstance(value, (dict, list)) or not value:
        return noise
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    value[key] = spoiled(value[key], path[1:], noise)
    return value


@given(snapshots)
def test_a_snapshot_survives_the_round_trip(said: Snapshot) -> None:
    """Everything an agent knows reads back as it was written."""
    assert said == read_snapshot(write_snapshot(said))


@given(snapshots, st.lists(st.integers(0, 20), min_size=1, max_size=6), json_values)
def test_a_spoiled_snapshot_is_read_or_refused_by_name(
    said: Snapshot, path: list[int], noise: object
) -> None:
    """Whatever stands in a field, the reader raises nothing but what its callers expect."""
    whole = spoiled(json.loads(write_snapshot(said)), path, noise)

    try:
        read_snapshot(json.dumps(whole))
    except (InvalidError, UnknownVersionError) as error:
        assert str(error).startswith("snapshot")


@given(noise | json_values.map(json.dumps))
def test_noise_is_no_snapshot(text: str) -> None:
    """Noise is refused by name, never read as a node with nothing on it."""
    try:
        read_snapshot(text)
    except (InvalidError, UnknownVersionError) as error:
        assert "snapshot" in str(error)
    else:
        raise AssertionError(text)


amounts = st.integers(0, LARGEST)
counts = st.integers(0, 2**31)
days = st.builds(
    NeedDay,
    day=st.dates().map(lambda day: day.isoformat()),
    peak_bytes=amounts,
    pods=counts,
    processes=counts,
    held_seconds=st.integers(0, 10**9).map(float),
    capped=st.booleans(),
    told_bytes=st.none() | amounts,
    limit_bytes=st.none() | amounts,
    evicted_bytes=amounts,
    evicted_limit_bytes=amounts,
    evictions=counts,
    out_of_memory_limit_bytes=amounts,
    driver_peak=st.booleans(),
    process_bytes=amounts,
    started=counts,
    shares=counts,
    levels=st.dictionaries(amounts, st.integers(0, 86_400).map(float), max_size=MOST_LEVELS).map(
        lambda times: tuple(sorted(times.items()))
    ),
)
ordered = st.lists(days, max_size=4, unique_by=lambda row: row.day).map(
    lambda rows: tuple(sorted(rows, key=lambda row: row.day))
)
owners = st.builds(
    OwnerNeed,
    st.builds(NeedKey, noise, noise, noise, noise, st.sampled_from(["T4", "L4"])),
    ordered,
)
cards = st.builds(CardNeed, st.sampled_from(["T4", "L4"]), amounts, amounts)
needs = st.builds(
    NodeNeed,
    noise,
    st.lists(owners, max_size=4).map(tuple),
    st.lists(cards, max_size=2).map(tuple),
)


@given(needs)
def test_a_need_survives_the_round_trip(need: NodeNeed) -> None:
    """Everything that is remembered reads back as it was written."""
    assert need == read_need(write_need(need))


@given(needs, st.lists(st.integers(0, 20), max_size=6), json_values)
def test_a_spoiled_need_is_read_or_refused(need: NodeNeed, path: list[int], value: object) -> None:
    """
    Whatever somebody puts into the object, reading it says what is wrong and never fails otherwise.
    """
    text = json.dumps(spoiled(json.loads(write_need(need)), path, value))
    try:
        read = read_need(text)
    except (InvalidError, UnknownVersionError):
        return

    assert MOST_BYTES >= len(write_need(bounded(read, "2026-11-19")))


@given(needs, st.dates().map(lambda day: day.isoformat()))
def test_what_is_kept_is_bounded_and_part_of_what_there_was(need: NodeNeed, today: str) -> None:
    """Nothing is made up, and keeping it again changes nothing."""
    kept = bounded(need, today)

    assert MOST_OWNERS >= len(kept.owners)
    assert {day for owner in kept.owners for day in owner.days} <= {
        day for owner in need.owners for day in owner.days
    }
    assert kept == bounded(kept, today)


@examples(15)  # each writes up to a megabyte, again and again
@given(
    quiet=st.lists(st.integers(1, 14), min_size=1, max_size=8),
    crowds=st.lists(
        st.tuples(st.integers(100, 250), st.integers(1, 14), st.integers(0, 4000)),
        min_size=1,
        max_size=3,
    ),
)
@example(quiet=[14], crowds=[(250, 14, 4000), (250, 14, 0)])
def test_nobody_loses_a_day_by_what_others_write(
    quiet: list[int], crowds: list[tuple[int, int, int]]
) -> None:
    """
    Whatever takes no more than its equal share of the bytes is kept whole, however much others
    write, however long their names are.
    """
    small = [_owner("quiet", f"o{place}", count) for place, count in enumerate(quiet)]
    large = [
        _owner(f"crowd-{place}", f"{number:03}" + "n" * length, count)
        for place, (owners, count, length) in enumerate(crowds)
        for number in range(owners)
    ]
    need = NodeNeed("n", (*small, *large))
    kept = bounded(need, "2026-11-14")
    left = [item for item in kept.owners if item.key.namespace == "quiet"]

    assert MOST_BYTES >= len(write_need(kept))
    assert small == left
    assert kept == bounded(kept, "2026-11-14")


def _owner(namespace: str, name: str, count: int) -> OwnerNeed:
    full = NeedDay("", LARGEST, told_bytes=LARGEST, limit_bytes=LARGEST, evicted_bytes=LARGEST)
    rows = tuple(full._replace(day=f"2026-11-{15 - age:02}") for age in range(count, 0, -1))
    return OwnerNeed(NeedKey(namespace, "Deployment", name, "main", "T4"), rows)


@given(st.lists(needs, max_size=3))
def test_whatever_nodes_say_something_can_be_said_of_it(every: list[NodeNeed]) -> None:
    """Each key that held anything has one summary, whose target is no more than its card."""
    held = {
        owner.key for need in every for owner in need.owners for row in owner.days if row.peak_bytes
    }
    said = summaries(every)

    assert held == {item.key for item in said}
    assert all(item.target_bytes is None or not item.capped for item in said)
