"""What a pod is held to whose words cannot be read together."""

from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.held import held_limits
from gpufence.limits import Limits
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import T4_BYTES, container, gpushare, pod

GPU = {names.NVIDIA_GPU: "1"}


def held(
    raw: dict[str, Any], units: Units | None = None, card: int | None = T4_BYTES, **words: Any
) -> tuple[int | None, bool] | None:
    """Return the limit and whether it is enforced; None where nothing can be read."""
    read = read_pod(raw)
    options = read_pod_options(read.annotations, frozenset(item.name for item in read.containers))
    candidate = CandidateCard(units or Units(), card)
    found = held_limits(read, options, NamespaceOptions(**words), candidate)
    return (found.limit_bytes, found.enforced) if isinstance(found, Limits) else None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (pod(gpushare(units="2"), annotations={names.KAI_FRACTION: "0.5"}), 2 * GIB),
        (pod(gpushare(units="9"), annotations={names.KAI_FRACTION: "0.5"}), T4_BYTES // 2),
        (
            pod(container(**{names.HAMI_MEMORY: "2048", names.HAMI_PERCENTAGE: "0"}, **GPU)),
            2 * GIB,
        ),
        (
            pod(
                container("a", **{names.HAMI_MEMORY: "9999999"}, **GPU),
                container("b", **{names.HAMI_MEMORY: "2048"}),
            ),
            T4_BYTES + 2 * GIB,
        ),
        (
            pod(
                gpushare("a"),
                container("b", **{names.GPUSHARE_MEMORY: "x", names.VOLCANO_MEMORY: "0"}),
            ),
            3 * GIB,
        ),
        (
            pod(container(), annotations={names.KAI_MEMORY: "x", names.KAI_FRACTION: "0.25"}),
            T4_BYTES // 4,
        ),
        (
            pod(container(), annotations={names.KAI_MEMORY: "512", names.KAI_FRACTION: "0.25"}),
            512 * MIB,
        ),
        (pod(container(), annotations={names.KAI_MEMORY: "x"}), None),
    ],
)
def test_the_smallest_amount_that_can_be_read_counts(
    raw: dict[str, Any], expected: int | None
) -> None:
    """Whatever else stands on the pod, what one system can read is a limit."""
    found = held(raw)

    assert expected == (found and found[0])
    assert found is None or found[1]


def test_what_somebody_wrote_counts_before_what_follows_from_the_node() -> None:
    """A share that the node implies is smaller here, but enforced by nobody."""
    raw = pod(container(**GPU, **{names.GPUSHARE_MEMORY: "9"}))

    assert (9 * GIB, True) == held(raw, Units(clients=4))


def test_a_selector_that_nobody_can_read_leaves_what_the_node_says() -> None:
    """The pod has its node; how many share a card there is the node's to say."""
    raw = pod(container(**GPU), nodeSelector={names.GKE_CLIENTS: "many"})

    assert (T4_BYTES // 4, False) == held(raw, Units(clients=4))


@pytest.mark.parametrize(
    ("annotations", "ceiling", "expected"),
    [
        ({"gpufence.io/memory.a": "2Gi"}, None, 2 * GIB),
        ({"gpufence.io/memory.a": "2Gi", names.MEMORY: "2Gi"}, None, 2 * GIB),
        ({"gpufence.io/memory.a": "2Gi"}, GIB, GIB),
    ],
)
def test_what_the_pod_grants_itself_counts_however_it_is_split(
    annotations: dict[str, str], ceiling: int | None, expected: int
) -> None:
    """Amounts that leave some container without one are a limit of the pod, under the ceiling."""
    raw = pod(container("a", **GPU), container("b", **GPU), annotations=annotations)

    assert (expected, True) == held(raw, max_memory_bytes=ceiling)


def test_an_unknown_unit_holds_nobody() -> None:
    """Where only the node could tell what a number means, there is no limit until it does."""
    assert held(pod(gpushare()), Units(gpushare_bytes=None)) is None


def test_an_unknown_unit_hides_no_other_amount() -> None:
    """What another system can read beside it counts."""
    raw = pod(gpushare(), annotations={names.KAI_MEMORY: "512"})

    assert (512 * MIB, True) == held(raw, Units(gpushare_bytes=None))


def test_an_unknown_card_leaves_amounts_in_bytes() -> None:
    """A share of nobody knows what is no amount."""
    raw = pod(gpushare(), annotations={names.KAI_FRACTION: "0.1"})

    assert (3 * GIB, True) == held(raw, card=None)


@pytest.mark.parametrize(("ceiling", "expected"), [(None, 1), (2 * GIB, 2 * GIB)])
def test_a_namespace_may_say_what_a_pod_without_a_request_holds(
    ceiling: int | None, expected: int
) -> None:
    """Where the namespace evicts such pods they may hold next to nothing, or the ceiling."""
    found = held(pod(container()), max_memory_bytes=ceiling, evicts_undeclared=True)

    assert (expected, True) == found


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (pod(gpushare()), (3 * GIB, True)),
        (pod(container(**GPU)), (T4_BYTES, False)),
        (pod(container(), annotations={names.MEMORY: "2Gi"}), (2 * GIB, True)),
        (pod(container(), annotations={names.KAI_FRACTION: "many"}), (1, True)),
    ],
    ids=["an amount", "a card", "the pod's own amount", "words that nobody can read"],
)
def test_who_asks_is_held_to_that(raw: dict[str, Any], expected: tuple[int, bool]) -> None:
    """A request that can be read counts there as everywhere; one that cannot counts as none."""
    assert expected == held(raw, evicts_undeclared=True)


def test_a_doubt_is_no_missing_request() -> None:
    """Where only the node or a claim could tell what a pod asks for, it asked for something."""
    claimed = pod(container(), resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])

    assert held(pod(gpushare()), Units(gpushare_bytes=None), evicts_undeclared=True) is None
    assert held(claimed, evicts_undeclared=True) is None
