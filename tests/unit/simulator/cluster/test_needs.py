"""
What a machine is found to lack.
"""

from __future__ import annotations

from pathlib import Path

from simulator.cluster import needs
from simulator.cluster.needs import Missing

NOTHING = Missing((), ())
GROUPS = [Path("/sys/fs/cgroup/memory")]


def test_a_machine_without_programs_lacks_all(tmp_path: Path) -> None:
    """
    Every program is looked for, and each names its package.
    """
    found = needs.missing(str(tmp_path))

    assert set(needs.PACKAGES) <= set(found.things)
    assert {"containerd", "runc", "buildah", "mmdebstrap", "build-essential"} <= set(found.packages)


def test_packages_are_named_once(tmp_path: Path) -> None:
    """
    A package that brings several programs is asked for once.
    """
    found = needs.missing(str(tmp_path))

    assert 1 == found.packages.count("containerd")
    assert 1 == found.packages.count("util-linux")


def test_root_on_a_full_machine_has_no_problem() -> None:
    """
    Nothing is wrong where nothing is missing.
    """
    assert [] == needs.problems(0, NOTHING, GROUPS)


def test_another_user_is_told() -> None:
    """
    Who is not root is told to be.
    """
    (problem,) = needs.problems(1000, NOTHING, GROUPS)

    assert "run this as root" in problem


def test_missing_programs_come_with_the_command() -> None:
    """
    The command that helps is written out.
    """
    (problem,) = needs.problems(0, Missing(("ctr", "runc"), ("containerd", "runc")), GROUPS)

    assert "missing: ctr, runc" in problem
    assert "apt-get install containerd runc" in problem


def test_all_problems_are_told_at_once() -> None:
    """
    Nobody mends one thing to be told of the next.
    """
    assert 3 == len(needs.problems(1000, Missing(("runc",), ("runc",)), []))
