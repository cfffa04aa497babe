"""
What a machine is found to lack.
"""

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


def test_root_on_a_full_machine_has_no_problem() -> None:
    """
    Nothing is wrong where nothing is missing.
    """
    assert [] == needs.problems(0, NOTHING, GROUPS)


def test_all_problems_are_told_at_once() -> None:
    """
    Nobody mends one thing to be told of the next.
    """
    assert 3 == len(needs.problems(1000, Missing(("runc",), ("runc",)), []))
