"""What owners say of pods that use no GPU, and what the controller says of their releases."""

import json
from collections.abc import Mapping

import pytest

from gpufence.errors import GpufenceError, InvalidError, UnknownVersionError
from gpufence.idle import (
    IdleRung,
    IdleWords,
    OwnerRelease,
    OwnerReleases,
    ReleaseNote,
    ReleasePhase,
    WakeBy,
    WithoutGpu,
    highest_rung,
    idle_rung,
    read_idle_words,
    read_note,
    read_owners,
    write_note,
    write_owners,
)

AFTER, CONTENDED = "gpufence.io/idle-after", "gpufence.io/idle-after-contended"
KEEP, WAKE = "gpufence.io/keep-until", "gpufence.io/wake"
WITHOUT = "gpufence.io/pods-without-gpu"
NOTE = ReleaseNote(ReleasePhase.RELEASED, 1_800_000_000.0, 3, "idle since noon")


def words(namespace: Mapping[str, str], owner: Mapping[str, str]) -> IdleWords:
    return read_idle_words(namespace, owner, after=900.0, least=60.0)


@pytest.mark.parametrize(
    ("namespace", "owner", "expected"),
    [
        ({}, {}, (900.0, 900.0)),
        ({AFTER: "1h"}, {}, (3600.0, 3600.0)),
        ({AFTER: "1h"}, {AFTER: "10m"}, (600.0, 600.0)),
        ({AFTER: "1h"}, {AFTER: "2h"}, (3600.0, 3600.0)),
        ({}, {AFTER: "2h"}, (900.0, 900.0)),
        ({}, {AFTER: "10m"}, (600.0, 600.0)),
        ({CONTENDED: "1m"}, {}, (900.0, 60.0)),
        ({CONTENDED: "2m"}, {CONTENDED: "1m"}, (900.0, 60.0)),
        ({CONTENDED: "2m"}, {CONTENDED: "5m"}, (900.0, 120.0)),
        ({CONTENDED: "2h"}, {}, (900.0, 900.0)),
        ({AFTER: ""}, {AFTER: ""}, (900.0, 900.0)),
    ],
)
def test_an_owner_may_shorten_times_and_not_lengthen_them(
    namespace: dict[str, str], owner: dict[str, str], expected: tuple[float, float]
) -> None:
    """The namespace's word, or else the setting, is the longest; contended is never longer."""
    read = words(namespace, owner)

    assert expected == (read.after_seconds, read.contended_seconds)
    assert () == read.problems


def test_the_later_word_keeps() -> None:
    """An owner is kept until the later of its own time and its namespace's."""
    early, late = "2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z"

    assert 1_800_003_600.0 == words({KEEP: late}, {KEEP: early}).keep_until
    assert 1_800_003_600.0 == words({KEEP: early}, {KEEP: late}).keep_until
    assert None is words({}, {}).keep_until


def test_the_owner_says_who_wakes_it() -> None:
    """The owner's word counts before its namespace's."""
    assert WakeBy.MANUAL is words({}, {}).wake
    assert WakeBy.WHEN_FREE is words({WAKE: "when-free"}, {}).wake
    assert WakeBy.MANUAL is words({WAKE: "when-free"}, {WAKE: "manual"}).wake


def test_an_owner_says_whether_its_pods_without_gpus_keep_it() -> None:
    """The owner's word counts before its namespace's; where neither says anything, they do."""
    assert WithoutGpu.KEEP is words({}, {}).without_gpu
    assert WithoutGpu.IGNORE is words({WITHOUT: "ignore"}, {}).without_gpu
    assert WithoutGpu.KEEP is words({WITHOUT: "ignore"}, {WITHOUT: "keep"}).without_gpu


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({AFTER: "soon"}, '"soon" is no length of time; write a time of at least 60s'),
        ({AFTER: "5s"}, '"5s" is too short'),
        ({CONTENDED: "1"}, '"1" is no length of time'),
        ({KEEP: "tomorrow"}, '"tomorrow" is no moment'),
        ({WAKE: "later"}, '"later" is not a choice; write one of manual, when-free'),
        ({WITHOUT: "yes"}, '"yes" is not a choice; write one of keep, ignore'),
    ],
)
def test_words_nobody_can_read_are_problems(annotations: dict[str, str], sentence: str) -> None:
    """What cannot be read is named with its key, wherever it stands."""
    (key,) = annotations
    for read in (words(annotations, {}), words({}, annotations)):
        (problem,) = read.problems

        assert key == problem.key
        assert f"metadata.annotations[{key}]: {sentence}" in problem.sentence


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        ("report", IdleRung.REPORT),
        ("warn", IdleRung.WARN),
        ("release", IdleRung.RELEASE),
        ("Release", None),
        ("", None),
    ],
)
def test_a_namespace_opts_in_by_its_label(text: str, rung: IdleRung | None) -> None:
    """One of three words, or nothing."""
    assert rung is idle_rung({"gpufence.io/idle": text})
    assert None is idle_rung({})


@pytest.mark.parametrize(
    ("data", "rung"),
    [
        (None, IdleRung.REPORT),
        ({}, IdleRung.RELEASE),
        ({"max-idle": "warn"}, IdleRung.WARN),
        ({"max-idle": "nonsense"}, IdleRung.REPORT),
    ],
)
def test_the_kill_switch_fails_towards_no_release(
    data: dict[str, str] | None, rung: IdleRung
) -> None:
    """
    A ConfigMap that is absent or unreadable releases nobody; one without the key holds nobody back.
    """
    assert rung is highest_rung(data)


def test_the_rungs_are_written_as_their_words() -> None:
    """What people write is what they are shown."""
    assert ["report", "warn", "release"] == [str(rung) for rung in IdleRung]


@pytest.mark.parametrize(
    "note",
    [
        NOTE,
        NOTE._replace(
            phase=ReleasePhase.WOKEN,
            woken_at=1_800_000_060.0,
            woken_by="kubectl",
            contested=(1_800_000_060.0, 1_800_000_120.0),
            left_alone_until=1_800_086_400.0,
        ),
    ],
)
def test_a_note_is_written_and_read(note: ReleaseNote) -> None:
    """Nothing that was noted is lost."""
    assert note == read_note(write_note(note))


def test_a_note_says_nothing_of_what_never_was() -> None:
    """A first release leaves a short note."""
    expected = (
        '{"v":1,"phase":"released","at":"2027-01-15T08:00:00Z","replicas":3,'
        '"why":"idle since noon"}'
    )

    assert expected == write_note(NOTE)


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"phase": "gone"},
        {"at": "now"},
        {"replicas": 0},
        {"replicas": 2**31},
        {"why": 3},
        {"contested": "x"},
        {"contested": ["x"]},
        {"leftAloneUntil": "x"},
    ],
)
def test_a_note_nobody_wrote_is_refused(change: dict[str, object]) -> None:
    """Whatever is not as gpufence writes it is named."""
    text = json.dumps(json.loads(write_note(NOTE)) | change)

    with pytest.raises(GpufenceError, match=r"gpufence\.io/released"):
        read_note(text)


def test_a_text_that_is_no_note_is_refused() -> None:
    """A note is JSON."""
    with pytest.raises(InvalidError, match="is not JSON"):
        read_note("yesterday")


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
