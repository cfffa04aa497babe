"""What is promised to a pod, and how far above that it may go."""

from collections.abc import Mapping
from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.held import held_limits
from gpufence.limits import Limits, Part
from gpufence.pods import read_pod
from gpufence.quantity import GIB
from tests.support.builders import T4_BYTES, container, gpushare, pod

GPU = {names.NVIDIA_GPU: "1"}
TWO = (container("a", **GPU), container("b", **GPU))


def limits(
    *containers: dict[str, Any],
    namespace: Mapping[str, str] | None = None,
    card_bytes: int | None = T4_BYTES,
    said: Mapping[str, str] | None = None,
    **more: str,
) -> Limits:
    """Read a pod whose words of ours are given without their prefix."""
    words = {f"{names.PREFIX}{key}": text for key, text in {**(said or {}), **more}.items()}
    found = read_pod(pod(*(containers or (gpushare(units="4"),)), annotations=words))
    options = read_pod_options(found.annotations, frozenset(c.name for c in found.containers))
    space = read_namespace_options(namespace or {})
    held = held_limits(found, options, space, CandidateCard(Units(clients=3), card_bytes))
    assert isinstance(held, Limits), held
    return held


@pytest.mark.parametrize(
    ("burst", "limit"),
    [
        ("10Gi", 10 * GIB),
        ("200%", 8 * GIB),
        ("card", T4_BYTES),
        ("40Gi", T4_BYTES),
        ("900%", T4_BYTES),
    ],
)
def test_a_burst_is_the_limit_and_the_amount_the_request(burst: str, limit: int) -> None:
    """An amount, a percentage of the request or the card, and never above the card."""
    found = limits(burst=burst)

    assert (limit, 4 * GIB, 4 * GIB) == (
        found.limit_bytes,
        found.promised_bytes,
        found.request_bytes,
    )
    assert (Part("main", limit, 1, 4 * GIB),) == found.parts
    assert () == found.notes


def test_containers_get_as_much_more_as_the_pod() -> None:
    """Of a pod's burst each container has the same part as of its request."""
    found = limits(*TWO, said={"memory": "4Gi", "memory.a": "1Gi", "burst": "8Gi"})

    assert (Part("a", 2 * GIB, 1, GIB), Part("b", 6 * GIB, 1, 3 * GIB)) == found.parts


@pytest.mark.parametrize(
    "said",
    [{}, {"burst": "100%"}, {"burst": "4Gi"}, {"burst": "half"}],
    ids=lambda said: said.get("burst", "none"),
)
def test_limit_and_request_are_one_number_otherwise(said: dict[str, str]) -> None:
    """Without a burst, with one that is the request, or one that cannot be read."""
    found = limits(said=said)

    assert (4 * GIB, None, 4 * GIB) == (
        found.limit_bytes,
        found.promised_bytes,
        found.request_bytes,
    )
    assert (Part("main", 4 * GIB, 1, 4 * GIB),) == found.parts


@pytest.mark.parametrize("card_bytes", [None, 4 * GIB, 3 * GIB])
def test_there_is_no_burst_on_a_card_that_has_no_more(card_bytes: int | None) -> None:
    """On a card of unknown size, or one that is no larger than the request, the request counts."""
    found = limits(burst="card", card_bytes=card_bytes)

    assert (4 * GIB, None, ()) == (found.limit_bytes, found.promised_bytes, found.notes)


ASK = "counts; ask for less, or have the ceiling raised"


@pytest.mark.parametrize(
    ("said", "namespace", "limit", "sentence"),
    [
        (
            {"burst": "2Gi"},
            {},
            4,
            "is below the request of 4Gi, which counts; write more than that, or lower the request",
        ),
        (
            {"burst": "card"},
            {names.MAX_BURST: "150%"},
            6,
            f"is above the namespace's gpufence.io/max-burst of 6Gi; the ceiling {ASK}",
        ),
        (
            {"burst": "10Gi"},
            {names.MAX_BURST: "card", names.MAX_MEMORY: "8Gi"},
            8,
            f"is above the namespace's gpufence.io/max-memory of 8Gi; the ceiling {ASK}",
        ),
        (
            {"burst": "10Gi"},
            {names.MAX_BURST: "2Gi"},
            4,
            f"is above the namespace's gpufence.io/max-burst of 2Gi; the request {ASK}",
        ),
        (
            {"burst": "10Gi"},
            {names.MAX_BURST: "much"},
            4,
            (
                "does not count while the namespace's gpufence.io/max-burst cannot be read; "
                "correct that"
            ),
        ),
    ],
    ids=["below", "max-burst", "max-memory", "no room", "unreadable"],
)
def test_a_burst_that_is_not_followed_is_named(
    said: dict[str, str], namespace: dict[str, str], limit: int, sentence: str
) -> None:
    """What a pod says and does not get is told with field, value and remedy."""
    found = limits(namespace=namespace, said=said)

    (note,) = found.notes
    assert limit * GIB == found.limit_bytes
    assert f'metadata.annotations[gpufence.io/burst]: "{said["burst"]}" {sentence}' == note.sentence


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({names.NVIDIA_MIG_PREFIX + "1g.5gb": "1"}, "is no use on a MIG instance"),
        ({names.HAMI_MEMORY: "3000"}, "is no use where MPS or a library in the container"),
        ({names.VOLCANO_NUMBER: "1"}, "is no use for a pod that has whole cards"),
        (GPU, "has no amount to go above, since the pod declares none; write gpufence.io/memory"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_where_no_burst_can_work_it_is_said_why(asked: dict[str, str], sentence: str) -> None:
    """Hardware, library, whole cards and pods without an amount have no burst."""
    plain, found = limits(container(**asked)), limits(container(**asked), burst="card")

    (note,) = found.notes
    assert f'metadata.annotations[gpufence.io/burst]: "card" {sentence}' in note.sentence
    assert plain == found._replace(notes=())


@pytest.mark.parametrize("text", ["99%", "1.5%", "%", "-200%", "5000Ti", "2 Gi", "", "CARD"])
def test_what_is_no_burst_is_named_with_the_forms_there_are(text: str) -> None:
    """A burst that cannot be read is a problem of pod or namespace, and never taken for another."""
    said = read_pod_options({names.BURST: text}, frozenset({"main"}))
    ceiling = read_namespace_options({names.MAX_BURST: text})

    assert (None, None) == (said.burst, ceiling.max_burst)
    for key, (problem,) in ((names.BURST, said.unreadable), (names.MAX_BURST, ceiling.unreadable)):
        assert key == problem.key
        assert problem.sentence.endswith(
            "; write an amount such as 10Gi, a percentage of the request such as 200%, or card"
        )


def test_a_pod_that_nobody_can_read_has_no_burst() -> None:
    """Of words that contradict each other the smallest amount counts, and nothing above it."""
    two = container("main", **{names.GPUSHARE_MEMORY: "4", names.VOLCANO_MEMORY: "6000"})

    found = limits(two, burst="card")

    assert (4 * GIB, None) == (found.limit_bytes, found.promised_bytes)
