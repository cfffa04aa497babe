"""
Groups made, found and removed, on folders that are shaped like the kernel's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from simulator.cluster import cgroups
from simulator.cluster.setup import MachineError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "gpufence-cluster-x"


def first_version(root: Path) -> list[Path]:
    """
    Lay out two hierarchies of version 1, and a link to one of them.
    """
    made = [root / "cpuset", root / "memory"]
    for path in made:
        path.mkdir()
        (path / "cgroup.procs").touch()
    (root / "cpu").symlink_to(root / "cpuset")
    (root / "notes").touch()
    return made


def test_version_one_has_several_hierarchies(tmp_path: Path) -> None:
    """
    Each hierarchy counts once, whatever other names it has.
    """
    assert first_version(tmp_path) == cgroups.hierarchies(tmp_path)


def test_version_two_has_one_hierarchy(tmp_path: Path) -> None:
    """
    The root itself is the only place.
    """
    (tmp_path / "cgroup.controllers").touch()

    assert [tmp_path] == cgroups.hierarchies(tmp_path)


def test_a_group_is_made_everywhere(tmp_path: Path) -> None:
    """
    A kubelet finds the group in every hierarchy.
    """
    made = first_version(tmp_path)

    cgroups.make(NAME, tmp_path)

    assert [True, True] == [(path / NAME).is_dir() for path in made]
    assert {NAME} == cgroups.leftovers("gpufence-cluster-", tmp_path)


def test_a_group_goes_with_all_below(tmp_path: Path) -> None:
    """
    Pods' groups go before their parents.
    """
    for path in first_version(tmp_path):
        (path / NAME / "kubepods" / "besteffort" / "pod1").mkdir(parents=True)

    cgroups.remove(NAME, tmp_path)

    assert set() == cgroups.leftovers(NAME, tmp_path)


def test_a_group_in_use_is_told(tmp_path: Path) -> None:
    """
    Processes that will not go are named by their group.
    """
    made = first_version(tmp_path)
    cgroups.make(NAME, tmp_path)
    (made[0] / NAME / "kubepods").mkdir()
    (made[0] / NAME / "kubepods" / "occupied").touch()

    with pytest.raises(MachineError, match="still has processes 0 s after the end"):
        cgroups.remove(NAME, tmp_path, seconds=0.0)
