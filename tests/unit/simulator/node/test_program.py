"""
Which commands run.
"""

from __future__ import annotations

import pytest

from simulator.node.errors import RefusedPodError
from simulator.node.program import arguments, check_programs
from tests.unit.simulator.node.builders import container, pod

WORKLOAD = ("-m", "simulator", "workload")


@pytest.mark.parametrize("python", ["python", "python3", "python3.12", "/usr/bin/python3"])
def test_a_command_of_the_workload_runs(python: str) -> None:
    """
    Any Python that runs the workload's module does, whatever the image.
    """
    found = arguments("anything:1", (python, *WORKLOAD), ("hold 1Gi", "--card", "0"))

    assert ("hold 1Gi", "--card", "0") == found


@pytest.mark.parametrize(
    "image",
    [
        "gpufence/workload",
        "gpufence/workload:1.2",
        "gpufence/workload@sha256:00",
        "registry.example:5000/gpufence/workload:v1",
    ],
)
def test_the_image_of_the_workload_runs_its_arguments(image: str) -> None:
    """
    The workload's image, under any registry and tag, needs only arguments.
    """
    assert ("hold 1Gi",) == arguments(image, (), ("hold 1Gi",))


@pytest.mark.parametrize(
    ("image", "command", "shown"),
    [
        ("gpufence/workload", ("sh", "-c", "rm -rf /"), "sh -c rm -rf /"),
        ("pytorch", ("python", "-c", "import os"), "python -c import os"),
        ("pytorch", ("pythonic", *WORKLOAD), "pythonic -m simulator workload"),
        ("pytorch", ("$(X)", *WORKLOAD), "$(X) -m simulator workload"),
        ("pytorch", (), "the command of image pytorch"),
        ("gpufence/workload-2", (), "the command of image gpufence/workload-2"),
        ("evilgpufence/workload", (), "the command of image evilgpufence/workload"),
    ],
)
def test_anything_else_is_refused(image: str, command: tuple[str, ...], shown: str) -> None:
    """
    Any other program is refused with what would run.
    """
    with pytest.raises(RefusedPodError) as caught:
        arguments(image, command, ())

    assert str(caught.value).startswith(f"{shown} is no simulator workload; this node runs only")


def test_a_pod_with_workloads_only_is_fine() -> None:
    """
    A pod whose containers all are workloads may run.
    """
    check_programs(pod(container("a"), container("b")))


def test_one_other_container_refuses_the_pod() -> None:
    """
    One container that is no workload, an init container too, keeps the whole pod out.
    """
    with pytest.raises(RefusedPodError, match="image busybox"):
        check_programs(pod(container(), inits=(container("first", image="busybox"),)))
