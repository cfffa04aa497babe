"""
The cgroup line of a container.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.node.cgroup import cgroup_line
from tests.unit.simulator.node.builders import pod

ID = "ab" * 32
POD = "pod11111111_2222_3333_4444_555555555555"


@pytest.mark.parametrize(
    ("quality", "folders"),
    [
        ("Guaranteed", f"kubepods.slice/kubepods-{POD}.slice"),
        (
            "Burstable",
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{POD}.slice",
        ),
        (
            "BestEffort",
            f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{POD}.slice",
        ),
    ],
)
def test_the_line_is_that_of_a_real_node(quality: str, folders: str) -> None:
    """
    The path has a level for the class of service, but not for Guaranteed.
    """
    found = cgroup_line(replace(pod(), quality=quality), ID)

    assert f"0::/{folders}/cri-containerd-{ID}.scope\n" == found


def test_a_static_pod_is_named_by_its_hash() -> None:
    """
    The cgroup of a static pod carries the hash of its manifest instead of a UID.
    """
    found = cgroup_line(pod(annotations={"kubernetes.io/config.hash": "0" * 32}), ID)

    assert f"-pod{'0' * 32}.slice/" in found
