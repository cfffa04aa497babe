"""The plan annotation."""

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
)
from gpufence.quantity import GIB, MIB

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
        Plan(
            Mode.EVICT,
            "kai",
            None,
            {"a": ContainerPlan(None, 1, Headroom.FACTOR, None, UNKNOWN)},
        ),
    ],
    ids=["known", "by a profile", "nothing", "options of the namespace", "unknown card"],
)
def test_what_is_written_reads_back(plan: Plan) -> None:
    """Known and unknown figures survive the way through the annotation."""
    assert plan == read_plan(write_plan(plan))


@pytest.mark.parametrize(
    ("level", "changes", "field"),
    [
        ("plan", {"mode": "off"}, "mode"),
        ("plan", {"limit": "much"}, "limit"),
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
    part = write_container(CONTAINER)

    assert write_plan(plan) == join_plan(plan, {'a"b': part, "c": part})
    assert plan == read_plan(write_plan(plan))
