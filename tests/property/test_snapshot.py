"""
Snapshots come back as they were written, and noise is refused by name.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.quantity import LARGEST
from gpufence.snapshot import (
    CardRow,
    NobodyRow,
    OwnerRow,
    PodRow,
    ProcessRow,
    Snapshot,
    UseRow,
    read_snapshot,
    write_snapshot,
)
from tests.property.strategies import json_values, noise

_counts = st.integers(0, 2**31)
_bytes = st.integers(0, LARGEST)
_maybe_bytes = st.none() | _bytes
_seconds = st.integers(0, 2**40).map(lambda milliseconds: round(milliseconds / 1000, 3))
_maybe_seconds = st.none() | _seconds
_processes = st.builds(
    ProcessRow, pid=_counts, used_bytes=_maybe_bytes, container=noise, command=noise
)
_cards = st.builds(
    CardRow,
    uuid=noise,
    index=_counts,
    model=noise,
    total_bytes=_bytes,
    used_bytes=_maybe_bytes,
    free_bytes=_maybe_bytes,
    reserved_bytes=_maybe_bytes,
    committed_bytes=_bytes,
    unattributed_bytes=_maybe_bytes,
    listed_seconds_ago=_maybe_seconds,
    mps=st.booleans(),
    trouble=noise,
)
_uses = st.builds(
    UseRow,
    card=noise,
    used_bytes=_maybe_bytes,
    limit_bytes=_maybe_bytes,
    allowance_bytes=_maybe_bytes,
    outcome=noise,
    over_seconds=_seconds,
    due_seconds=_maybe_seconds,
    processes=st.lists(_processes, max_size=2).map(tuple),
)
_pods = st.builds(
    PodRow,
    uid=noise,
    namespace=noise,
    name=noise,
    mode=noise,
    owner=noise,
    injected=st.booleans(),
    undeclared=noise,
    terminating=st.booleans(),
    uses=st.lists(_uses, max_size=2).map(tuple),
)
_owners = st.builds(
    OwnerRow,
    namespace=noise,
    kind=noise,
    name=noise,
    limit_bytes=_maybe_bytes,
    peak_bytes=_bytes,
    over_seconds=_seconds,
    processes=_counts,
    injected=st.booleans(),
    pods=_counts,
    evictions=_counts,
)
snapshots = st.builds(
    Snapshot,
    node=noise,
    version=noise,
    at=noise,
    started=noise,
    driver=noise,
    highest=noise,
    fresh=st.booleans(),
    stale_seconds=_maybe_seconds,
    brake=noise,
    trouble=noise,
    cards=st.lists(_cards, max_size=2).map(tuple),
    pods=st.lists(_pods, max_size=2).map(tuple),
    nobody=st.lists(st.builds(NobodyRow, card=noise, process=_processes), max_size=2).map(tuple),
    owners=st.lists(_owners, max_size=2).map(tuple),
)


def spoiled(value: Any, path: list[int], noise: object) -> Any:
    """
    Put noise in the place that `path` leads to.
    """
    if not path or not isinstance(value, (dict, list)) or not value:
        return noise
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    value[key] = spoiled(value[key], path[1:], noise)
    return value


@given(snapshots)
def test_a_snapshot_survives_the_round_trip(said: Snapshot) -> None:
    """
    Everything an agent knows reads back as it was written.
    """
    assert said == read_snapshot(write_snapshot(said))


@given(snapshots, st.lists(st.integers(0, 20), min_size=1, max_size=6), json_values)
def test_a_spoiled_snapshot_is_read_or_refused_by_name(
    said: Snapshot, path: list[int], noise: object
) -> None:
    """
    Whatever stands in a field, the reader raises nothing but what its callers expect.
    """
    whole = spoiled(json.loads(write_snapshot(said)), path, noise)

    try:
        read_snapshot(json.dumps(whole))
    except (InvalidError, UnknownVersionError) as error:
        assert str(error).startswith("snapshot")


@given(noise | json_values.map(json.dumps))
def test_noise_is_no_snapshot(text: str) -> None:
    """
    Noise is refused by name, never read as a node with nothing on it.
    """
    try:
        read_snapshot(text)
    except (InvalidError, UnknownVersionError) as error:
        assert "snapshot" in str(error)
    else:
        raise AssertionError(text)
