"""Which amounts of a profile are applied, and to which pods."""

import pytest

from gpufence import names
from gpufence.dialects.spec import LARGEST_CARD
from gpufence.need import Confidence, NeedSummary
from gpufence.need.applied import AppliedProfile, applied_amounts, applied_texts, is_applied
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import container, pod
from tests.support.needs import NEED_KEY, need_summary

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
    assert {names.MEMORY: "6144Mi"} == applied_texts(PROFILE, made(gpu("main"), {"name": "proxy"}))


def test_several_containers_get_their_own() -> None:
    """So none takes another's part."""
    assert {f"{names.MEMORY}.main": "6144Mi", f"{names.MEMORY}.side": "1024Mi"} == applied_texts(
        PROFILE, made(gpu("main"), gpu("side"))
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
    assert {} == applied_texts(PROFILE, asked)


def test_who_asks_by_annotation_is_known_by_its_containers() -> None:
    """KAI's pods ask for a share without naming it among the resources."""
    asked = made({"name": "main"}, {"name": "proxy"}, **{names.KAI_FRACTION: "0.5"})

    assert {names.MEMORY: "6144Mi"} == applied_texts(PROFILE, asked)


@pytest.mark.parametrize(
    "others", [{names.MEMORY: "6Gi"}, {names.MEMORY: "6144Mi", f"{names.MEMORY}.side": "1Gi"}, {}]
)
def test_a_pod_holds_to_a_profile_by_what_it_says(others: dict[str, str]) -> None:
    """Whoever has written it there: a second look comes to the same."""
    assert is_applied(PROFILE, made(gpu("main"), **{names.MEMORY: "6144Mi", "other": "x"}))
    assert not is_applied(PROFILE, made(gpu("main"), **others))
