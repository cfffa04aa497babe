"""
What the outside and the inside of a cluster tell each other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from simulator.cluster import init
from simulator.cluster.setup import ClusterSetup, read_setup

if TYPE_CHECKING:
    from pathlib import Path


def setup(folder: Path) -> ClusterSetup:
    return ClusterSetup(
        folder=folder,
        node="gpu-1",
        cards="2xT4",
        unit="GiB",
        cgroup="/group",
        networks=folder / "cni",
        images=(folder / "one.tar", folder / "two.tar"),
    )


def test_a_setup_survives_being_written(tmp_path: Path) -> None:
    """
    The inside reads what the outside wrote.
    """
    assert setup(tmp_path) == read_setup(setup(tmp_path).write())


def test_all_is_in_the_folder(tmp_path: Path) -> None:
    """
    What is left of a cluster is in one place.
    """
    made = setup(tmp_path)

    assert {tmp_path} == {made.plane.parent, made.pid.parent, made.ready.parent}


def test_process_one_notes_who_it_is(tmp_path: Path) -> None:
    """
    The number noted is that of the /proc that is mounted.
    """
    init.note_outer_pid(tmp_path / "pid")

    assert str(os.getpid()) == (tmp_path / "pid").read_text()
