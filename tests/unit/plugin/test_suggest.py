"""
Suggested limits.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance
from kubectl_gpufence.report.owners import OwnerLine, suggested_limit


@pytest.mark.parametrize(
    ("peak", "processes", "limit"),
    [(2 * GIB, 1, 2496 * MIB), (0, 0, 640 * MIB), (10 * GIB, 1, 15_360 * MIB)],
)
def test_a_suggestion_is_the_share_rule_backwards(peak: int, processes: int, limit: int) -> None:
    """
    The peak and a tenth, less the contexts, is seven tenths of what is suggested.
    """
    assert limit == suggested_limit(peak, processes, 512 * MIB)


@given(
    st.integers(0, 200 * GIB),
    st.integers(0, 8),
    st.sampled_from([0, 512 * MIB, 640 * MIB, 768 * MIB]),
)
def test_what_was_measured_fits_under_the_suggestion(
    peak: int, processes: int, reserve: int
) -> None:
    """
    Told its share of the suggested limit, a workload could hold its peak once more.
    """
    count = max(processes, 1)
    limit = suggested_limit(peak, processes, reserve)
    may = allowance(limit, limit, ShareTerms(reserve, count))

    assert limit >= peak
    assert not may.starved
    assert may.bytes * count + count * reserve >= peak


def test_a_peak_at_the_cap_is_marked() -> None:
    """
    A framework that took all it was told to says nothing about its need.
    """
    owner = OwnerLine(
        namespace="a",
        kind="Job",
        name="b",
        nodes=1,
        limit_bytes=3 * GIB,
        peak_bytes=2150 * MIB,
        over_seconds=0.0,
        processes=1,
        injected=True,
        pods=1,
        evictions=0,
        reserve_bytes=512 * MIB,
    )

    assert owner.full
