"""The snapshot an agent hands out, as text."""

import json
from typing import Any

import pytest

from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.quantity import GIB, MIB
from gpufence.snapshot import (
    CARD_ROWS,
    CUTS,
    OUTLINES,
    CardRow,
    NobodyRow,
    PodActivityRow,
    PodRow,
    ProcessRow,
    Snapshot,
    SnapshotCut,
    UseRow,
    read_snapshot,
    write_snapshot,
)

SNAPSHOT = Snapshot(
    node="gpu-1",
    version="0.1.0",
    at="2026-01-02T03:04:05Z",
    started="2026-01-02T00:00:00Z",
    driver="570.124.06",
    highest="evict",
    fresh=True,
    stale_seconds=0.2504,
    cards=(
        CardRow("GPU-0", 0, "Tesla T4", 15 * GIB, 4 * GIB, 11 * GIB, 300 * MIB, 3 * GIB, 0, 1.5),
        CardRow("GPU-1", 1, "Tesla T4", 15 * GIB, trouble="lost"),
    ),
    pods=(
        PodRow(
            uid="u1",
            namespace="team-a",
            name="trainer-0",
            mode="evict",
            owner="Job/trainer",
            activity=PodActivityRow("busy", 0.0, "Busy", busy_share=0.4167),
            uses=(
                UseRow(
                    card="GPU-0",
                    used_bytes=4 * GIB + 1,
                    limit_bytes=3 * GIB,
                    allowance_bytes=2150 * MIB,
                    outcome="holding",
                    over_seconds=12.0,
                    due_seconds=18.0,
                    processes=(ProcessRow(41, 4 * GIB + 1, container="trainer"),),
                ),
            ),
        ),
    ),
    nobody=(NobodyRow("GPU-0", ProcessRow(7, None, command="Xorg")),),
    cap_slack_bytes=256 * MIB,
)


def written() -> dict[str, Any]:
    """Return the text of the snapshot above as JSON that a test may spoil."""
    said: dict[str, Any] = json.loads(write_snapshot(SNAPSHOT))
    return said


def test_a_snapshot_is_one_line_of_versioned_json_that_people_can_read() -> None:
    """Amounts are quantities, unknown ones null, and what is empty stays out of a process's row."""
    said = Snapshot(
        node="n",
        version="1",
        at="t",
        started="s",
        cards=(CardRow("GPU-0", 0, "T4", 15 * GIB),),
        nobody=(NobodyRow("GPU-0", ProcessRow(7, MIB + 1, command="Xorg")),),
    )

    assert (
        '{"v":1,"node":"n","version":"1","at":"t","started":"s","driver":"","highest":"",'
        '"fresh":false,"stale":null,"brake":"","trouble":"","cards":[{"uuid":"GPU-0","index":0,'
        '"model":"T4","total":"15360Mi","used":null,"free":null,"reserved":null,"committed":"0",'
        '"unattributed":null,"listed":null,"mps":false,"trouble":""}],"pods":[],'
        '"nobody":[{"card":"GPU-0","pid":7,"used":"1048577","command":"Xorg"}],"cap_slack":null}'
    ) == write_snapshot(said)


def test_times_are_kept_to_the_millisecond() -> None:
    """A time reads back without the digits that nobody could use."""
    assert 0.25 == read_snapshot(write_snapshot(SNAPSHOT)).stale_seconds


def test_everything_else_reads_back_exactly() -> None:
    """Rows of every kind survive the way to the plugin and are written alike again."""
    text = write_snapshot(SNAPSHOT)

    assert text == write_snapshot(read_snapshot(text))


def test_parts_that_nobody_wants_are_not_read() -> None:
    """
    Of thousands of snapshots a reader takes the lists that it shows, whatever is in the others.
    """
    said = written()
    said["pods"] = "none of these"

    read = read_snapshot(json.dumps(said), CARD_ROWS)

    assert (SNAPSHOT.cards, (), ()) == (read.cards, read.pods, read.nobody)


@pytest.mark.parametrize("cut", CUTS, ids=[cut.name for cut in CUTS])
def test_a_part_reads_the_same_whoever_left_the_rest(cut: SnapshotCut) -> None:
    """An agent that knows the part says no more than it; an older one says everything."""
    newer, older = write_snapshot(SNAPSHOT, cut), write_snapshot(SNAPSHOT)

    assert len(newer) < len(older)
    assert read_snapshot(older, cut) == read_snapshot(newer, cut)


def test_outlines_tell_which_pods_are_fenced_and_over() -> None:
    """That, and the cards, is all that a table of nodes shows."""
    said = written()
    said["pods"][0]["uses"][0]["over"] = 5.0
    outlined = read_snapshot(json.dumps(said), OUTLINES)

    assert SNAPSHOT.cards == outlined.cards
    assert [(pod.mode, "") for pod in SNAPSHOT.pods] == [
        (pod.mode, pod.name) for pod in outlined.pods
    ]
    assert [5.0] == [use.over_seconds for pod in outlined.pods[:1] for use in pod.uses]


def test_an_outline_of_what_is_no_snapshot_names_the_field() -> None:
    """A cut believes no more than a reader."""
    said = written()
    said["pods"] = "none"

    with pytest.raises(InvalidError, match="pods"):
        read_snapshot(json.dumps(said), OUTLINES)


@pytest.mark.parametrize("rows", ["cards", "pods", "nobody"])
def test_fields_of_a_newer_agent_are_passed_over(rows: str) -> None:
    """What this program does not know changes nothing of what it does."""
    said = written()
    said["weather"] = "fine"
    said[rows][0]["temperature"] = 40

    assert read_snapshot(write_snapshot(SNAPSHOT)) == read_snapshot(json.dumps(said))


def test_a_newer_version_is_named() -> None:
    """The reader of version 1 does not guess at version 2."""
    said = written() | {"v": 2}

    with pytest.raises(UnknownVersionError, match="snapshot: version"):
        read_snapshot(json.dumps(said))


@pytest.mark.parametrize(
    ("row", "change", "field"),
    [
        ("cards", {"total": None}, "snapshot.cards[0].total"),
        ("cards", {"used": "-1"}, "snapshot.cards[0].used"),
        ("cards", {"index": -1}, "snapshot.cards[0].index"),
        ("cards", {"mps": None}, "snapshot.cards[0].mps"),
        ("cards", {"listed": -0.5}, "snapshot.cards[0].listed"),
        ("cards", {"listed": True}, "snapshot.cards[0].listed"),
        ("pods", {"name": 1}, "snapshot.pods[0].name"),
        ("pods", {"uses": {}}, "snapshot.pods[0].uses"),
        ("nobody", {"pid": "7"}, "snapshot.nobody[0].pid"),
    ],
)
def test_a_broken_field_is_named(row: str, change: dict[str, object], field: str) -> None:
    """The error says which field of which row is wrong."""
    said = written()
    said[row][0] |= change

    with pytest.raises(InvalidError) as caught:
        read_snapshot(json.dumps(said))

    assert field == caught.value.problem.field


@pytest.mark.parametrize("share", [-0.1, 1.1, True, "half"])
def test_a_share_is_between_nothing_and_all(share: object) -> None:
    """A share of the time that cannot be is refused by its name."""
    said = written()
    said["pods"][0]["activity"]["busy_share"] = share

    with pytest.raises(InvalidError) as caught:
        read_snapshot(json.dumps(said))

    assert "snapshot.pods[0].activity.busy_share" == caught.value.problem.field


def test_a_broken_process_is_named_to_its_row() -> None:
    """The path leads through pod and card to the process."""
    said = written()
    said["pods"][0]["uses"][0]["processes"][0]["used"] = "?"

    with pytest.raises(InvalidError) as caught:
        read_snapshot(json.dumps(said))

    assert "snapshot.pods[0].uses[0].processes[0].used" == caught.value.problem.field


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"v":true}', '{"v":1}', "<html>"])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    """A proxy's error page or half an answer is never taken for an empty node."""
    with pytest.raises((InvalidError, UnknownVersionError)):
        read_snapshot(text)
