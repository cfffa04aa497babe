"""What agents, the webhook and the controller write for each other: plan and snapshot."""

import json
from typing import Any

import pytest

from gpufence.annotations import Headroom
from gpufence.errors import InvalidError, UnknownVersionError
from gpufence.mode import Mode
from gpufence.plan import (
    ContainerPlan,
    Done,
    Plan,
    ProfileUsed,
    Setting,
    join_plan,
    read_plan,
    write_container,
    write_plan,
    write_setting,
)
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

SETTING = Setting(
    env="XLA_PYTHON_CLIENT_MEM_FRACTION",
    slot="s0",
    form="fraction",
    done=Done.LOWERED,
    user="0.9",
    limit_bytes=3 * GIB,
    reserve_bytes=512 * MIB,
    card_bytes=15360 * MIB,
    allowance_bytes=2254857830,
)
CONTAINER = ContainerPlan(3 * GIB, 2, Headroom.AUTO, 2150 * MIB, (SETTING,))
PLAN = Plan(Mode.CAP, "gpushare", 3 * GIB, {"trainer": CONTAINER})
UNKNOWN = (Setting("A", "s1", "fixed", Done.SET), Setting("B", "s2", "fixed", Done.LEFT))


def changed(level: str, **changes: object) -> str:
    """Return the annotation with fields of the plan, its container or its setting changed."""
    said: dict[str, Any] = json.loads(write_plan(PLAN))
    trainer = said["containers"]["trainer"]
    {"plan": said, "container": trainer, "setting": trainer["settings"][0]}[level].update(changes)
    return json.dumps(said)


def test_the_annotation_is_one_line_of_versioned_json() -> None:
    """The plan stands on the pod as people and programs can read it."""
    assert (
        '{"v":1,"mode":"cap","dialect":"gpushare","limit":"3072Mi","containers":{"trainer":'
        '{"limit":"3072Mi","processes":2,"headroom":"auto","cap":"2150Mi","settings":['
        '{"env":"XLA_PYTHON_CLIENT_MEM_FRACTION","slot":"s0","form":"fraction","user":"0.9",'
        '"done":"lowered","L":"3072Mi","C":"512Mi","T":"15360Mi","A":"2254857830"}]}}}'
    ) == write_plan(PLAN)


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        PLAN._replace(profile=ProfileUsed("deployment-web", 3)),
        Plan(Mode.OBSERVE, "nvidia", None),
        Plan(Mode.CAP, "nvidia", GIB, namespace={"gpufence.io/max-memory": "1Gi"}),
        PLAN._replace(request_bytes=GIB),
        Plan(
            Mode.EVICT,
            "kai",
            None,
            {"a": ContainerPlan(None, 1, Headroom.FACTOR, None, UNKNOWN)},
        ),
    ],
    ids=["known", "by a profile", "nothing", "options of the namespace", "burst", "unknown card"],
)
def test_what_is_written_reads_back(plan: Plan) -> None:
    """Known and unknown figures survive the way through the annotation."""
    assert plan == read_plan(write_plan(plan))


@pytest.mark.parametrize(
    ("level", "changes", "field"),
    [
        ("plan", {"mode": "off"}, "mode"),
        ("plan", {"limit": "much"}, "limit"),
        ("plan", {"request": "much"}, "request"),
        ("plan", {"namespace": {"a": 1}}, "namespace[a]"),
        ("plan", {"profile": "x"}, "profile"),
        ("plan", {"profile": {"name": "x"}}, "profile.generation"),
        ("plan", {"containers": []}, "containers"),
        ("plan", {"containers": {"a": 1}}, "containers[a]"),
        ("container", {"processes": 0}, "containers[trainer].processes"),
        ("container", {"headroom": "some"}, "containers[trainer].headroom"),
        ("container", {"settings": {}}, "containers[trainer].settings"),
        ("setting", {"form": 1}, "containers[trainer].settings[0].form"),
        ("setting", {"done": None}, "containers[trainer].settings[0].done"),
        ("setting", {"user": 1}, "containers[trainer].settings[0].user"),
        ("setting", {"user": [1]}, "containers[trainer].settings[0].user"),
        ("setting", {"A": "-1"}, "containers[trainer].settings[0].A"),
    ],
)
def test_a_broken_plan_names_its_field(level: str, changes: dict[str, object], field: str) -> None:
    """What is not as a webhook writes it is refused with the path of the value."""
    with pytest.raises(InvalidError) as caught:
        read_plan(changed(level, **changes))

    assert f"gpufence.io/plan.{field}" == caught.value.problem.field


def test_a_choice_that_is_none_names_the_choices() -> None:
    """The remedy lists every word that would do."""
    with pytest.raises(InvalidError, match="write one of set, lowered, kept, left, planned"):
        read_plan(changed("setting", done="lost"))


def test_a_newer_version_is_named() -> None:
    """A plan of a newer webhook is not guessed at."""
    with pytest.raises(UnknownVersionError):
        read_plan(changed("plan", v=2))


def test_fields_of_a_newer_webhook_are_ignored() -> None:
    """A field this program does not know changes nothing it does."""
    assert PLAN == read_plan(changed("plan", reason="because"))


def test_parts_written_before_make_the_same_plan() -> None:
    """A container's part is written alike alone and within its plan, whatever its name."""
    plan = Plan(Mode.CAP, "gpushare", GIB, {'a"b': CONTAINER, "c": CONTAINER})
    part = write_container(CONTAINER, write_setting(SETTING))

    assert write_plan(plan) == join_plan(plan, {'a"b': part, "c": part})
    assert plan == read_plan(write_plan(plan))


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
                    fence="driver",
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


def test_an_older_agent_says_nothing_of_fences() -> None:
    """A row without the word is read, and tells of none."""
    said = written()
    del said["pods"][0]["uses"][0]["fence"]
    ((use,),) = (pod.uses for pod in read_snapshot(json.dumps(said)).pods)

    assert "" == use.fence


def test_parts_that_nobody_wants_are_not_read() -> None:
    """Of thousands of snapshots a reader takes the lists it shows, whatever is in the others."""
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


def test_a_newer_version_is_named_of_snapshot() -> None:
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
