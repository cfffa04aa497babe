"""A profile of what a model needs, when it is applied, and the rows of a node."""

from typing import Any

import pytest

from gpufence import names
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.errors import InvalidError
from gpufence.need import (
    Confidence,
    NeedKey,
    NeedReasons,
    NeedSummary,
    ProposalTerms,
    with_room,
)
from gpufence.need.applied import AppliedProfile, applied_amounts
from gpufence.need.profile import (
    Apply,
    MemoryProfile,
    ProfileCondition,
    ProfileTotal,
    conditions_of,
    profile_name,
    read_profile,
    total_of,
    write_status,
)
from gpufence.owners import top_owner, topmost
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import NEED_KEY, container, need_summary, pod

KEY = NeedKey("vision", "Deployment", "classifier", "server", "Tesla T4")
SUMMARY = need_summary()
LOW = need_summary(
    key=KEY._replace(container="tokenizer"),
    target_bytes=None,
    confidence=Confidence.LOW,
    limit_bytes=None,
    told_bytes=None,
    reasons=NeedReasons("a", "none: too little was measured", "c"),
)


def raw(*summaries: NeedSummary, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "vision", "name": "deployment-classifier", "generation": 3},
        "spec": {"targetRef": {"kind": "Deployment", "name": "classifier"}, **spec},
        "status": write_status(summaries, 3),
    }


def test_a_profile_reads_back_as_it_was_written() -> None:
    """Whoever reads the status sees what the controller found out."""
    assert MemoryProfile(
        "vision", "deployment-classifier", 3, "Deployment", "classifier", containers=(SUMMARY, LOW)
    ) == read_profile(raw(SUMMARY, LOW))


def test_what_is_applied_reads_back_too() -> None:
    """By container, in whatever order, also what is there twice."""
    amounts = {"tokenizer": GIB, "server": 6 * GIB}
    status = write_status([SUMMARY], 3, amounts)
    applied = status["applied"]

    assert isinstance(applied, list)
    twice = {"applied": [row for row in applied for _ in range(2)]}

    assert amounts == read_profile({**raw(SUMMARY), "status": status}).applied
    assert amounts == read_profile({**raw(SUMMARY), "status": {**status, **twice}}).applied


def test_what_kubectl_shows_is_in_whole_mebibytes() -> None:
    """Amounts that stand side by side have one unit; those of containers are exact."""
    peak = 2_360_736_104
    status = write_status([SUMMARY._replace(peak_bytes=peak)], 3)

    assert "2252Mi" == status["peak"]
    assert peak == read_profile({**raw(), "status": status}).containers[0].peak_bytes


def test_people_say_what_is_done_with_it() -> None:
    """Apply, ceiling and margin are read from the spec."""
    said = read_profile(raw(apply="AtCreate", max="20Gi", margin="25%"))

    assert (Apply.AT_CREATE, ProposalTerms(25, 20 * GIB)) == (said.apply, said.terms)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("margin", "much", 'spec.margin: "much" is no margin; write one such as 15%'),
        ("apply", "Now", 'spec.apply: "Now" is unknown; write Never or AtCreate'),
        ("max", "a lot", 'spec.max: "a lot" is not a Kubernetes quantity'),
    ],
)
def test_what_cannot_be_read_is_named(field: str, value: str, expected: str) -> None:
    """The error names the field, the value and the remedy."""
    with pytest.raises(InvalidError, match=f"^{expected}"):
        read_profile(raw(**{field: value}))


def test_a_status_that_somebody_else_wrote_is_named() -> None:
    """A confidence that does not exist is no confidence."""
    spoiled = raw(SUMMARY)
    spoiled["status"]["containers"][0]["confidence"] = "total"

    with pytest.raises(
        InvalidError, match=r'status.containers\[0\].confidence: "total" is unknown'
    ):
        read_profile(spoiled)


def test_the_columns_are_the_pods_on_the_card_where_it_needs_most() -> None:
    """Containers add up, and the most doubtful of them counts."""
    other = need_summary(key=KEY._replace(container="tokenizer"), target_bytes=GIB, peak_bytes=GIB)
    elsewhere = need_summary(key=KEY._replace(card="NVIDIA L4"), target_bytes=2 * GIB)

    assert ProfileTotal(16 * GIB, 5 * GIB, 7 * GIB, Confidence.HIGH, capped=False) == total_of(
        [elsewhere, SUMMARY, other]
    )
    assert ProfileTotal(None, 8 * GIB, None, Confidence.LOW, capped=False) == total_of(
        [SUMMARY, LOW]
    )
    assert total_of([]) is None


def test_a_container_that_was_renamed_is_not_there_twice() -> None:
    """The one that has gone counts alone, and not on top."""
    old = need_summary(last_day="2026-11-16")
    new = need_summary(
        key=KEY._replace(container="web"), target_bytes=5 * GIB, last_day="2026-11-19"
    )

    assert (6 * GIB, 6 * GIB) == tuple(
        getattr(total_of(rows), "target_bytes", None) for rows in ([old, new], [new, old])
    )


def test_a_profile_without_anything_measured_has_no_columns() -> None:
    """An owner that has held nothing yet says only by which spec that was seen."""
    assert {"observedGeneration": 1, "containers": []} == write_status([], 1)


def test_conditions_say_what_stands_against_a_target() -> None:
    """Each names the containers it is about, with the reason."""
    capped = need_summary(
        target_bytes=None, capped=True, reasons=NeedReasons("a", "none: all it was told", "c")
    )

    assert [
        ProfileCondition("Ready", True, "Measured", ""),  # noqa: FBT003 - the status of it
        ProfileCondition("AtCap", False, "BelowCap", ""),  # noqa: FBT003 - likewise
        ProfileCondition("LowConfidence", False, "Enough", ""),  # noqa: FBT003 - likewise
    ] == list(conditions_of([SUMMARY]))
    assert [
        (False, "server: none: all it was told, tokenizer: none: too little was measured"),
        (True, "server: none: all it was told"),
        (True, "tokenizer: none: too little was measured"),
    ] == [(item.holds, item.message) for item in conditions_of([capped, LOW])]


def test_a_profile_is_called_after_its_owner() -> None:
    """Kind and name tell it apart, and a name that is too long ends in a hash."""
    long = profile_name("StatefulSet", "n" * 253)

    assert "deployment-classifier" == profile_name("Deployment", "classifier")
    assert 253 == len(long)
    assert long != profile_name("StatefulSet", "n" * 252 + "m")


PROFILE = AppliedProfile("deployment-web", 3, {"main": 6 * GIB, "side": GIB})
SURE = need_summary()
OTHER_CARD = need_summary(key=NEED_KEY._replace(card="A100"), target_bytes=9 * GIB)
UNSURE = need_summary(confidence=Confidence.MEDIUM)
CAPPED = need_summary(target_bytes=None, capped=True)


def gpu(name: str) -> dict[str, object]:
    return container(name, **{names.NVIDIA_GPU: 1})


def made(*containers: dict[str, object], **annotations: str) -> Pod:
    return read_pod(pod(*containers, annotations=annotations))


@pytest.mark.parametrize(
    ("before", "rows", "expected"),
    [
        ({}, [SURE], {"server": 6 * GIB}),
        ({}, [SURE, OTHER_CARD], {"server": 9 * GIB}),
        ({}, [UNSURE], {}),
        ({}, [CAPPED], {}),
        ({}, [SURE, OTHER_CARD._replace(confidence=Confidence.LOW, target_bytes=None)], {}),
    ],
)
def test_an_amount_begins_where_all_targets_are_sure(
    before: dict[str, int], rows: list[NeedSummary], expected: dict[str, int]
) -> None:
    """On whichever card the next pod will run."""
    assert expected == applied_amounts(before, rows, None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], 8 * GIB),
        ([CAPPED], 8 * GIB),
        ([SURE], 6 * GIB),
        ([UNSURE], 8 * GIB),
        ([UNSURE._replace(target_bytes=10 * GIB)], 10 * GIB),
        ([CAPPED, OTHER_CARD], 9 * GIB),
        ([SURE._replace(target_bytes=8 * GIB + 64 * MIB)], 8 * GIB),
        ([SURE._replace(target_bytes=8 * GIB - 64 * MIB)], 8 * GIB),
    ],
)
def test_what_is_applied_stays_until_more_is_known(rows: list[NeedSummary], expected: int) -> None:
    """Down only where all is sure, up as soon as it is known, and not for a tenth."""
    assert {"server": expected} == applied_amounts({"server": 8 * GIB}, rows, None)


@pytest.mark.parametrize("most", [5 * GIB, None])
def test_a_ceiling_holds_at_once(most: int | None) -> None:
    """However little it changes; and nobody is given more than a card can hold."""
    before = {"server": LARGEST_CARD * 2}

    assert {"server": most or LARGEST_CARD} == applied_amounts(before, [], most)


def test_one_container_gets_the_pods_amount() -> None:
    """That is what people write most often."""
    assert {names.MEMORY: "6144Mi"} == PROFILE.texts(made(gpu("main"), {"name": "proxy"}))


def test_several_containers_get_their_own() -> None:
    """So none takes another's part."""
    assert {f"{names.MEMORY}.main": "6144Mi", f"{names.MEMORY}.side": "1024Mi"} == PROFILE.texts(
        made(gpu("main"), gpu("side"))
    )


@pytest.mark.parametrize(
    "asked",
    [
        made(gpu("main"), gpu("new")),
        made({"name": "proxy"}),
        made(gpu("main"), **{names.MEMORY: "1Gi"}),
        made(gpu("main"), **{f"{names.MEMORY}.main": "1Gi"}),
    ],
)
def test_who_gets_nothing(asked: Pod) -> None:
    """
    A container that nobody knows, a pod without any that is known, one that has said an amount.
    """
    assert {} == PROFILE.texts(asked)


def test_who_asks_by_annotation_is_known_by_its_containers() -> None:
    """KAI's pods ask for a share without naming it among the resources."""
    asked = made({"name": "main"}, {"name": "proxy"}, **{names.KAI_FRACTION: "0.5"})

    assert {names.MEMORY: "6144Mi"} == PROFILE.texts(asked)


@pytest.mark.parametrize(
    "others", [{names.MEMORY: "6Gi"}, {names.MEMORY: "6144Mi", f"{names.MEMORY}.side": "1Gi"}, {}]
)
def test_a_pod_holds_to_a_profile_by_what_it_says(others: dict[str, str]) -> None:
    """Whoever has written it there: a second look comes to the same."""
    assert PROFILE.holds(made(gpu("main"), **{names.MEMORY: "6144Mi", "other": "x"}))
    assert not PROFILE.holds(made(gpu("main"), **others))


HASH = {"pod-template-hash": "6664c96cd5"}


@pytest.mark.parametrize(
    ("kind", "name", "labels", "expected"),
    [
        ("ReplicaSet", "web-6664c96cd5", HASH, ("Deployment", "web")),
        ("ReplicaSet", "web-6664c96cd5", {}, ("ReplicaSet", "web-6664c96cd5")),
        ("ReplicaSet", "web", HASH, ("ReplicaSet", "web")),
        ("ReplicaSet", "-6664c96cd5", HASH, ("ReplicaSet", "-6664c96cd5")),
        ("Job", "nightly-29412345", {}, ("CronJob", "nightly")),
        ("Job", "train-20261119", {}, ("Job", "train-20261119")),
        ("Job", "train-v2", {}, ("Job", "train-v2")),
        ("StatefulSet", "db-29412345", {}, ("StatefulSet", "db-29412345")),
    ],
    ids=["rolled", "no hash", "bare", "nameless", "scheduled", "date", "version", "other"],
)
def test_the_owner_is_the_topmost_that_is_certain(
    kind: str, name: str, labels: dict[str, str], expected: tuple[str, str]
) -> None:
    """A name that changes with each roll-out or run is traced back where it leaves no doubt."""
    assert expected == top_owner(kind, name, labels)


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("ReplicaSet/web-6664c96cd5", "Deployment/web"),
        ("ReplicaSet/web-blue", "ReplicaSet/web-blue"),
        ("ReplicaSet/web-v2", "ReplicaSet/web-v2"),
        ("Job/nightly-29412345", "CronJob/nightly"),
        ("Pod/alone", "Pod/alone"),
    ],
)
def test_a_controllers_name_alone_leads_to_the_topmost(owner: str, expected: str) -> None:
    """Where pods' labels are not at hand, a ReplicaSet's ending has to be a hash by its letters."""
    assert expected == topmost(owner)


def crowd(**counts: int) -> list[NeedKey]:
    return [
        NeedKey(namespace, "Job", f"{number}", "main", "T4")
        for namespace, count in counts.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("counts", "most", "expected"),
    [
        ({"a": 3, "b": 2}, 5, {"a": 3, "b": 2}),
        ({"few": 2, "many": 90}, 10, {"few": 2, "many": 8}),
        ({"a": 7, "b": 90, "c": 90}, 12, {"a": 4, "b": 4, "c": 4}),
        ({"a": 5, "b": 5}, 7, {"a": 3, "b": 4}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"b": 1, "c": 1}),
        ({"a": 1}, 0, {}),
    ],
    ids=["room", "crowd", "two crowds", "odd", "no share", "none"],
)
def test_a_crowd_takes_nobodys_place(
    counts: dict[str, int], most: int, expected: dict[str, int]
) -> None:
    """Each namespace has an equal share of the room or all it needs, and of each the last stay."""
    kept = with_room(crowd(**counts), most)

    assert expected == {
        name: sum(key.namespace == name for key in kept) for name in sorted({k[0] for k in kept})
    }
    assert {f"{count - 1}" for name, count in counts.items() if name in expected} <= {
        key.name for key in kept
    }
