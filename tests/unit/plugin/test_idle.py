"""Owners of GPU pods, and what they hold in vain."""

import pytest

from gpufence.quantity import GIB
from kubectl_gpufence.verbs import parse
from kubectl_gpufence.verbs.idle.lines import (
    IDLE_FIELDS,
    IdleLine,
    SeenOwners,
    idle_lines,
    is_about,
    use_of,
)
from kubectl_gpufence.view import records
from tests.support.plugin import NODE, snapshot
from tests.support.verb_cases import (
    BUSY,
    JOB,
    UNMEASURED,
    WORKER,
    alone,
    api_owner,
    idle,
    led,
    measured,
    owned,
    said,
)


def line_of(*pods: tuple[str, object]) -> IdleLine:
    """Build the line of an owner whose pods do this."""
    rows = tuple(measured(name, doing, GIB) for name, doing in pods)  # type: ignore[arg-type]  # any
    cluster = SeenOwners(tuple(owned(WORKER, name) for name, _ in pods), {NODE: snapshot(*rows)})
    return idle_lines(cluster, "")[0]


def test_an_owner_is_as_idle_as_its_busiest_pod() -> None:
    """The shortest time counts, and one busy pod makes the owner busy."""
    both = line_of(("a", idle(60.0)), ("b", idle(7200.0)))
    one = line_of(("a", BUSY), ("b", idle(7200.0)))

    assert ("idle", 60.0) == (both.state, both.idle_seconds)
    assert ("busy", 0.0) == (one.state, one.idle_seconds)


@pytest.mark.parametrize(
    ("doing", "state", "why"),
    [
        (idle(8.0), "busy", "the controller waits until its pods have been idle for longer"),
        (BUSY, "idle", "it is in use again"),
        (BUSY, "busy", "pod a uses its GPU"),
    ],
)
def test_what_the_controller_does_not_know_yet_is_not_its_reason(
    doing: object, state: str, why: str
) -> None:
    """State, time and reason are of one moment: an owner idle for 8 s does not use its GPU."""
    line = line_of(("a", doing))
    releases = said(WORKER, state=state, why="pod a uses its GPU")

    assert why == line._replace(said=releases).why


def test_unknown_is_never_idle() -> None:
    """One pod that is unknown makes its owner unknown, and its hours are not counted."""
    line = line_of(("a", UNMEASURED), ("b", idle(7200.0)))

    assert ("unknown", None, None) == (line.state, line.idle_seconds, line.gib_hours)
    assert "a: MPS is on the card" == line.why


def test_hours_in_vain_are_memory_times_time() -> None:
    """Two pods of a GiB each for half an hour are one GiB-hour."""
    assert 1.0 == line_of(("a", idle(1800.0)), ("b", idle(1800.0))).gib_hours


def test_the_most_in_vain_is_first() -> None:
    """Memory times time counts before time alone, and who is released or busy comes last."""
    names = [line.name for line in idle_lines(alone(), "")]

    assert ["worker", "claimer"] == names[:2]


def test_only_the_namespace_is_shown() -> None:
    """Of what the controller says of all namespaces the one that was asked for is shown."""
    assert [] == idle_lines(led()._replace(pods=()), "team-b")


def test_an_owner_is_met_in_whichever_version() -> None:
    """The version of its group is no part of who somebody is."""
    line = line_of(("a", BUSY))
    older = WORKER._replace(kind=WORKER.kind._replace(api_version="apps/v1beta1"))

    assert is_about(line, older)
    assert not is_about(line, api_owner("worker", JOB))


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (None, "no agent of node gpu-1 answers"),
        (snapshot(), "the agent of node gpu-1 says nothing of it"),
        (snapshot(measured("a", None, GIB)), "the agent of node gpu-1 says nothing of it"),
        (snapshot(stale_seconds=99.0), "what the agent of node gpu-1 knows is too old"),
    ],
)
def test_what_no_agent_says_is_unknown(shown: object, why: str) -> None:
    """Silence, age and older agents make a pod unknown, each with its reason."""
    use = use_of(owned(WORKER, "a"), shown)  # type: ignore[arg-type]  # None or a snapshot

    assert ("unknown", None, why) == (use.state, use.idle_seconds, use.why)


def test_memory_that_is_not_known_is_not_added_up() -> None:
    """A card that hides what a pod holds makes the sum unknown."""
    rows = snapshot(measured("a", idle(60.0), GIB, None))
    [line] = idle_lines(SeenOwners((owned(WORKER, "a"),), {NODE: rows}), "")

    assert line.held_bytes is None


def test_programs_get_all_of_it() -> None:
    """
    As JSON an owner has exact figures, null for what is unknown, and what the controller says.
    """
    found = {item["name"]: item for item in records(IDLE_FIELDS, idle_lines(led(), ""))}

    assert {
        "namespace": "team-a",
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "worker",
        "replicas": 2,
        "pods": ["worker-1", "worker-2"],
        "nodes": [NODE],
        "state": "idle",
        "idle": 3000.0,
        "evidence": ["no kernels, no memory moved and nothing computed"],
        "held": "5905580033",
        "gibHours": pytest.approx(4.583, abs=0.001),
        "deadline": "2030-03-17T17:47:05Z",
        "step": "announce",
        "rung": "release",
        "contended": True,
        "waiters": ["team-a/both-cards-x"],
        "why": "all its pods have been idle since 2030-03-17T16:55:40Z",
    } == found["worker"]
    assert (None, None, []) == tuple(found["new"][key] for key in ("idle", "held", "waiters"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["keep", "deploy/a"],
        ["keep", "deploy/a", "--for", "1h", "--clear"],
        ["keep", "--clear"],
        ["wake", "deploy/a", "--replicas", "few"],
        ["wake", "a/b/c"],
        ["release"],
        ["release", "-A"],
        ["idle", "deploy/a"],
    ],
)
def test_calls_that_cannot_be_read_end_at_once(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is missing or contradicts itself is said before anybody is asked."""
    with pytest.raises(SystemExit) as ended:
        parse(arguments)

    assert (2, "") == (ended.value.code, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("keep deploy/a --for soon", '--for: "soon" is no length of time; write a time of at'),
        ("keep deploy/a --for 30s", '--for: "30s" is too short; write a time of at least 60s'),
        ("keep deploy/a --until x", '--until: "x" is no moment; write it as RFC 3339, such as'),
        ("keep deploy/a --until 2001-01-01T00:00:00Z", "is over; name a moment after"),
        ("keep deploy/A_b --clear", '"A_b" is no name of an object; names have small letters'),
        ("wake deploy/a --replicas 0", '"0" is no number of replicas; write one from 1 to'),
        ("wake deploy/a --replicas 9999999999", '"9999999999" is no number of replicas; write'),
        ("wake deploy/a --replicas 2147483648", '"2147483648" is no number of replicas; write'),
        ("release deploy/a -n X_", '"X_" is no name of an object; names have small letters'),
    ],
)
def test_a_wrong_word_is_named_with_its_remedy(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Option, value and remedy stand in one sentence, before any cluster is asked."""
    with pytest.raises(SystemExit) as ended:
        parse(arguments.split())

    assert 2 == ended.value.code
    assert said in capsys.readouterr().err


def test_everything_can_be_planned_without_an_owner() -> None:
    """What would be done is shown of all, and of one."""
    assert parse(["release", "-A", "--dry-run"]).owner is None
    assert "deploy/a" == parse(["release", "deploy/a"]).owner
