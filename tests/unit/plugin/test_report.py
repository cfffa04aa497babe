"""Suggested limits, and what a report says of its owners."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufence.quantity import GIB, MIB
from gpufence.share import ShareTerms, allowance
from kubectl_gpufence.report.owners import OwnerLine, owner_json, owner_lines, since
from kubectl_gpufence.report.owners import suggested_limit as suggested
from tests.support.plugin import owner_row, scene
from tests.support.plugin_cases import reported


@pytest.mark.parametrize(
    ("peak", "processes", "limit"),
    [(2 * GIB, 1, 3200 * MIB), (0, 0, 640 * MIB), (10 * GIB, 1, 16_640 * MIB)],
)
def test_a_suggestion_is_the_share_rule_backwards(peak: int, processes: int, limit: int) -> None:
    """The peak less the least of contexts, and a margin, is seven tenths of what is suggested."""
    assert limit == suggested(peak, processes, 512 * MIB)


@given(
    st.integers(0, 200 * GIB),
    st.integers(0, 8),
    st.sampled_from([0, 512 * MIB, 640 * MIB, 768 * MIB]),
)
def test_what_was_measured_fits_under_the_suggestion(
    peak: int, processes: int, reserve: int
) -> None:
    """Told its share of the suggested limit, a workload could hold its peak once more."""
    count = max(processes, 1)
    limit = suggested(peak, processes, reserve)
    may = allowance(limit, limit, ShareTerms(reserve, count))

    assert limit >= peak
    assert not may.starved
    assert may.bytes * count + count * reserve >= peak


def test_a_peak_at_the_cap_is_marked() -> None:
    """A framework that took all it was told to says nothing about its need."""
    assert OwnerLine(owner_row(peak_bytes=2150 * MIB), 1, 512 * MIB).full
    assert not OwnerLine(owner_row(peak_bytes=3073 * MIB), 1, 512 * MIB).full


def test_reports_name_their_time() -> None:
    """Whoever reads a peak knows since when it counts."""
    assert ("2026-01-02T00:00:00Z", "2026-01-02T02:00:00Z") == since(reported())
    assert ("", "") == since(scene())


def test_without_a_peak_nothing_is_suggested() -> None:
    """An owner that held nothing gets null, not a limit of zero."""
    items = {item["name"]: item for item in map(owner_json, owner_lines(reported(), ""))}

    assert (4, None) == (items["greedy"]["pods"], items["idle"]["suggested"])
