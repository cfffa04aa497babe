"""What an agent wrote comes back, and what somebody has spoiled is read or refused by name."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from gpufence.errors import InvalidError, UnknownVersionError
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
from gpufence.quantity import LARGEST
from tests.property.strategies import json_values, noise
from tests.property.test_snapshot import spoiled

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
