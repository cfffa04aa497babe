"""How many cards are needed, and which are free then."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.quantity import GIB
from gpufence.snapshot import PodRow, Snapshot
from kubectl_gpufence.verbs.recommend.freed import Packing, PodShare, cards_needed, packings
from tests.support.builders import T4_BYTES
from tests.support.needs import NEED_KEY, need_summary
from tests.support.plugin import card_row, pod_row, snapshot, use_row


def share(pod: str, amount: int, card: str = "GPU-0") -> PodShare:
    return PodShare(pod, card, "T4", amount * GIB, by_target=True)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], 0),
        ([share("a", 6), share("b", 5), share("c", 5), share("d", 4)], 2),
        ([share("a", 6), share("b", 6)], 2),
        ([share("a", 1), share("a", 1, "GPU-1")], 2),
        ([share("a", 40), share("b", 1)], 2),
    ],
    ids=["nobody", "full", "too large", "two of one pod", "larger than a card"],
)
def test_the_largest_are_packed_first(shares: list[PodShare], expected: int) -> None:
    """Each goes to the first card with room, and no pod gets one card twice."""
    assert expected == cards_needed(shares, 10 * GIB)


@given(st.lists(st.integers(1, 10), max_size=12))
def test_no_packing_is_better_than_the_sum_or_worse_than_its_bound(sizes: list[int]) -> None:
    """First fit decreasing needs at least the sum's cards, and at most twice as many and one."""
    needed = cards_needed([share(str(at), size) for at, size in enumerate(sizes)], 10 * GIB)

    assert -(-sum(sizes) // 10) <= needed <= 2 * -(-sum(sizes) // 10) + 1


def pods(*owners: str, **changes: Any) -> tuple[PodRow, ...]:
    return tuple(
        pod_row(use_row(**changes), namespace="vision", uid=f"u{at}", owner=owner)
        for at, owner in enumerate(owners)
    )


def seen(*rows: PodRow) -> dict[str, Snapshot]:
    return {"gpu-1": snapshot(*rows, cards=(card_row(), card_row(1)))}


def test_pods_of_an_owner_count_by_its_target() -> None:
    """A ReplicaSet's pods are their Deployment's, and what has no target counts by its limit."""
    rows = pods("ReplicaSet/classifier-7d9f8b6c4d", "ReplicaSet/classifier-7d9f8b6c4d", "Job/train")
    elsewhere = pod_row(use_row(card="GPU-1"), uid="u9", owner="", name="alone")

    assert [Packing("Tesla T4", T4_BYTES, 2, 2, 2, 4, 2, 18 * GIB)] == packings(
        seen(*rows, elsewhere), [need_summary()], ""
    )
    assert [Packing("Tesla T4", T4_BYTES, 2, 1, 1, 3, 2, 15 * GIB)] == packings(
        seen(*rows, elsewhere), [need_summary()], "vision"
    )


@pytest.mark.parametrize("order", [1, -1])
def test_an_owner_whose_container_has_no_target_has_none(order: int) -> None:
    """Then what its pods may hold at present counts."""
    side = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=None)
    rows = pods("Deployment/classifier")
    (packing,) = packings(seen(*rows), [need_summary(), side][::order], "")

    assert (0, 3 * GIB) == (packing.by_target, packing.share_bytes)


def test_containers_of_a_pod_add_up() -> None:
    """What a pod takes of a card is the sum of its containers' targets."""
    side = need_summary(key=NEED_KEY._replace(container="side"), target_bytes=GIB)
    (packing,) = packings(seen(*pods("Deployment/classifier")), [need_summary(), side], "")

    assert (1, 7 * GIB) == (packing.by_target, packing.share_bytes)


def test_a_container_that_is_gone_does_not_add_up() -> None:
    """The larger of what was and what is counts, as of one that kept its name."""
    now, before = (
        need_summary(key=NEED_KEY._replace(container=name), target_bytes=size * GIB, last_day=day)
        for name, size, day in (("new", 4, "2026-11-19"), ("old", 6, "2026-11-16"))
    )
    (packing,) = packings(seen(*pods("Deployment/classifier")), [now, before], "")

    assert (1, 6 * GIB) == (packing.by_target, packing.share_bytes)


def test_what_nobody_knows_is_not_packed() -> None:
    """A pod of unknown use without a limit, and one on a card that is gone, are left out."""
    unknown = pods("", limit_bytes=None, used_bytes=None)
    gone = pod_row(use_row(card="GPU-gone"), uid="u9")
    (packing,) = packings(seen(*unknown, gone), [], "")

    assert (0, 0, 0) == (packing.held, packing.needed, packing.shares)
