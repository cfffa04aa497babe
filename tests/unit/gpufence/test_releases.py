"""What the controller says of owners, as text."""

import json

import pytest

from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.idle import ReleaseNote, ReleasePhase
from gpufence.releases import OwnerRelease, OwnerReleases, read_owners, write_owners

IDLE = OwnerRelease(
    namespace="vision",
    api_version="apps/v1",
    kind="Deployment",
    name="worker",
    way="scale",
    state="idle",
    step="announce",
    why="nobody uses it",
    idle_since=1_900_000_000.0,
    deadline=1_900_000_900.0,
    contended=True,
    waiters=("speech/trainer",),
    replicas=1,
    rung="release",
    pods=1,
    note=ReleaseNote(ReleasePhase.RELEASED, 1_800_000_000.0, 2, "nobody used it"),
)
OWNERS = OwnerReleases(leader=True, at=1_900_000_300.0, brake="", owners=(IDLE,))


def test_owners_are_one_line_of_versioned_json() -> None:
    """Moments are RFC 3339, and what nobody knows is null."""
    bare = OwnerReleases(leader=False, at=0.0, owners=(OwnerRelease("n", "v1", "Pod", "p"),))

    assert (
        '{"v":1,"leader":false,"at":"1970-01-01T00:00:00Z","brake":"","owners":[{"namespace":"n",'
        '"apiVersion":"v1","kind":"Pod","name":"p","way":"","state":"","step":"","why":"",'
        '"idleSince":null,"deadline":null,"contended":false,"waiters":[],"replicas":null,'
        '"rung":"","pods":0,"note":null}]}'
    ) == write_owners(bare)


def test_owners_read_back() -> None:
    """What a controller writes is what a plugin reads."""
    assert OWNERS == read_owners(write_owners(OWNERS))


def test_what_a_newer_controller_adds_is_passed_over() -> None:
    """A field that is not known changes nothing."""
    said = json.loads(write_owners(OWNERS))
    said["owners"][0]["weather"] = "fine"

    assert OWNERS == read_owners(json.dumps(said))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"deadline": "soon"}, "owners.owners[0].deadline"),
        ({"replicas": -1}, "owners.owners[0].replicas"),
        ({"waiters": [1]}, "owners.owners[0].waiters[0]"),
        ({"contended": None}, "owners.owners[0].contended"),
        ({"note": "{}"}, "owners.owners[0].note"),
    ],
)
def test_a_broken_field_is_named(change: dict[str, object], field: str) -> None:
    """The error says which field of which owner is wrong."""
    said = json.loads(write_owners(OWNERS))
    said["owners"][0] |= change

    with pytest.raises(InvalidError) as caught:
        read_owners(json.dumps(said))

    assert field == caught.value.problem.field


def test_a_newer_version_is_named() -> None:
    """The reader of version 1 does not guess at version 2."""
    with pytest.raises(UnknownVersionError, match="owners: version"):
        read_owners('{"v":2}')
