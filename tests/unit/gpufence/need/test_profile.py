"""What models need as objects of the cluster."""

from typing import Any

import pytest

from gpufence.errors import InvalidError
from gpufence.need import Confidence, NeedKey, NeedReasons, NeedSummary, ProposalTerms
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
from gpufence.quantity import GIB
from tests.support.needs import need_summary

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
    """By container, in whatever order."""
    amounts = {"tokenizer": GIB, "server": 6 * GIB}
    status = write_status([SUMMARY], 3, amounts)

    assert amounts == read_profile({**raw(SUMMARY), "status": status}).applied


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
