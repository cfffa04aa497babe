"""Snapshots come back as they were written, and noise is refused by name."""

import json
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.quantity import LARGEST
from gpufence.snapshot import Snapshot, read_snapshot, write_snapshot
from tests.property.strategies import json_values, noise

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
