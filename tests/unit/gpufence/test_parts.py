"""The parts of containers of a pod's limit, and what a pod holds already."""

from typing import Any

import pytest

from gpufence import names
from gpufence.annotations import Headroom, NamespaceOptions, read_pod_options
from gpufence.candidates import CandidateCard
from gpufence.dialects import Units
from gpufence.held import held_limits
from gpufence.limits import Limits
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from gpufence.share import (
    LEAST_ALLOWANCE,
    Allowance,
    ShareTerms,
    allowance,
    reserve_bytes,
    smallest_limit,
    write_fraction,
)
from tests.support.builders import A100_BYTES, T4_BYTES, container, gpushare, pod


def terms(
    reserve_mebibytes: int = 512, processes: int = 1, headroom: Headroom = Headroom.FACTOR
) -> ShareTerms:
    return ShareTerms(reserve_mebibytes * MIB, processes, headroom)


@pytest.mark.parametrize(
    ("capability", "tensorflow", "cards", "mebibytes"),
    [
        ((7, 5), False, 1, 512),
        ((8, 0), False, 1, 640),
        ((8, 9), False, 1, 640),
        (None, False, 1, 640),
        ((9, 0), False, 1, 768),
        ((12, 0), False, 1, 768),
        ((7, 5), True, 1, 768),
        ((7, 5), False, 2, 1280),
        ((9, 0), True, 8, 1792),
    ],
)
def test_the_reserve_follows_the_card_and_the_framework(
    capability: tuple[int, int] | None, *, tensorflow: bool, cards: int, mebibytes: int
) -> None:
    """Newer cards, TensorFlow and several cards need more outside the allocator."""
    assert mebibytes * MIB == reserve_bytes(capability, tensorflow=tensorflow, cards=cards)


AUTO = Headroom.AUTO


@pytest.mark.parametrize(
    ("limit", "share", "size"),
    [
        (10 * GIB, terms(), 7 * GIB),
        (GIB, terms(512), 512 * MIB),
        (3 * GIB, terms(512, processes=3), 512 * MIB),
        (99 * GIB, terms(), A100_BYTES * 7 // 10),
        (2 * GIB, terms(headroom=AUTO), 2 * GIB * 7 // 10),
        (5 * GIB, terms(headroom=AUTO), 3584 * MIB),
        (10 * GIB, terms(headroom=AUTO), 8704 * MIB),
        (38 * GIB, terms(headroom=AUTO), 37376 * MIB),
        (10 * GIB, terms(640, processes=4, headroom=AUTO), (10 * GIB - 4 * 640 * MIB) // 4),
    ],
)
def test_an_allowance_is_what_contexts_leave(limit: int, share: ShareTerms, size: int) -> None:
    """
    Three tenths of a limit, and at least the reserve of each process, are left to what no framework
    counts; automatic headroom stops at 1.5 GiB. A limit counts as no more than the card.
    """
    assert size == allowance(limit, A100_BYTES, share).bytes


def test_a_fraction_is_rounded_once() -> None:
    """Seven tenths of 3 GiB of a T4 are exactly fourteen hundredths."""
    may = allowance(3 * GIB, T4_BYTES, terms())

    assert "0.140000" == write_fraction(may.numerator, may.denominator * T4_BYTES)


@pytest.mark.parametrize("headroom", list(Headroom))
@pytest.mark.parametrize("processes", [1, 2, 7])
@pytest.mark.parametrize("reserve", [0, 512, 1792])
def test_the_smallest_limit_is_just_enough(
    headroom: Headroom, processes: int, reserve: int
) -> None:
    """The limit that a refusal names works, and one MiB less does not."""
    conditions = terms(reserve, processes, headroom)
    limit = smallest_limit(conditions)

    assert not allowance(limit, 999 * GIB, conditions).starved
    assert allowance(limit - MIB, 999 * GIB, conditions).starved


@pytest.mark.parametrize(
    ("limit", "processes", "size"),
    [(600 * MIB, 1, LEAST_ALLOWANCE), (GIB, 16, 64 * MIB), (MIB, 1, MIB), (3, 7, 1)],
)
def test_a_starved_process_gets_the_least_that_starts(
    limit: int, processes: int, size: int
) -> None:
    """A limit too small for its contexts yields 128 MiB, at most its share of it, never zero."""
    assert Allowance(size, 1, starved=True) == allowance(limit, T4_BYTES, terms(512, processes))


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1, 3, "0.333333"),
        (2, 3, "0.666666"),
        (1, 1, "1.000000"),
        (3, 2, "1.000000"),
        (1, 10**6, "0.000001"),
        (1, 3 * 10**6, "0.0000003"),
        (1, 192 * GIB, "0.000000000004"),
        (0, 10**6, "0.000001"),
    ],
)
def test_a_fraction_is_never_zero_and_never_above_one(part: int, whole: int, text: str) -> None:
    """Six decimals rounded down, more where they would say zero, which means "no limit" to most."""
    assert text == write_fraction(part, whole)


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


OPEN = Units(gpushare_bytes=None)


@pytest.mark.parametrize(
    ("raw", "more", "expected"),
    [
        (pod(gpushare()), {"units": OPEN}, None),
        (pod(gpushare(), annotations={names.KAI_MEMORY: "512"}), {"units": OPEN}, 512 * MIB),
        (pod(gpushare(), annotations={names.KAI_FRACTION: "0.1"}), {"card": None}, 3 * GIB),
        (
            pod(container(**GPU, **{names.GPUSHARE_MEMORY: "9"})),
            {"units": Units(clients=4)},
            9 * GIB,
        ),
        (pod(container()), {"evicts_undeclared": True}, 1),
        (
            pod(container()),
            {"evicts_undeclared": True, "max_memory_bytes": 2 * GIB},
            2 * GIB,
        ),
    ],
    ids=["unit", "amount beside", "card", "share implied", "next to nothing", "ceiling"],
)
def test_what_can_be_read_holds(raw: dict[str, Any], more: Any, expected: int | None) -> None:
    """
    An unknown unit or card hides no amount beside it; what somebody wrote counts before what the
    node implies; where a namespace evicts pods without a request, they hold next to nothing.
    """
    assert (expected and (expected, True)) == held(raw, **more)


def test_a_selector_that_nobody_can_read_leaves_what_the_node_says() -> None:
    """The pod has its node; how many share a card there is the node's to say."""
    raw = pod(container(**GPU), nodeSelector={names.GKE_CLIENTS: "many"})

    assert (T4_BYTES // 4, False) == held(raw, Units(clients=4))


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
