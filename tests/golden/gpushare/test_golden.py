"""
The tables of `kubectl inspect gpushare` are those in the files beside this one: what the program of
that name from gpushare-device-plugin printed.

tests/http/plugin/test_gpushare.py compares with that program where somebody has it. Never write
these files from what ours prints.
"""

import pytest

from kubectl_gpufence.gpushare.books import details, read_book, read_booking, summary, with_bookings
from tests.support.gpushare_cases import CLUSTERS, FOLDER, Cluster, golden


@pytest.mark.parametrize("by_pod", [False, True])
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_is_shown_as_by_gpushare_itself(name: str, *, by_pod: bool) -> None:
    """Each byte is that of gpushare's own program."""
    shown = _shown(CLUSTERS[name], by_pod=by_pod)

    assert golden(name, details=by_pod).read_bytes() == shown.encode()


def test_no_file_is_left_over() -> None:
    """Each file belongs to a cluster."""
    expected = {golden(name, details=by_pod) for name in CLUSTERS for by_pod in (False, True)}

    assert expected == set(FOLDER.glob("*.txt"))


def _shown(cluster: Cluster, *, by_pod: bool) -> str:
    nodes = [read_book(item) for item in cluster.nodes]
    chosen = [
        node for node in nodes if (node.name == cluster.asked if cluster.asked else node.total > 0)
    ]
    living = [
        item for item in cluster.pods if item["status"]["phase"] not in {"Succeeded", "Failed"}
    ]
    bookings = [booking for item in living if (booking := read_booking(item)) is not None]
    return (details if by_pod else summary)(with_bookings(chosen, bookings))
