"""
Which pods can run here.
"""

from typing import Any

import pytest

from simulator.node.errors import RefusedPodError
from simulator.node.launch import check_pod, workload_arguments
from tests.unit.simulator.node.builders import container, pod

WORKLOAD = ("-m", "simulator", "workload")


def arguments(image: str, command: tuple[str, ...], *args: str) -> tuple[str, ...]:
    (main,) = pod(container(image=image, command=list(command), args=list(args))).containers
    return workload_arguments(main, (*command, *args))


@pytest.mark.parametrize("python", ["python", "python3", "python3.12", "/usr/bin/python3"])
def test_a_command_of_the_workload_runs(python: str) -> None:
    """
    Any Python that runs the workload's module does, whatever the image.
    """
    assert ("hold 1Gi", "--card", "0") == arguments(
        "anything:1", (python, *WORKLOAD), "hold 1Gi", "--card", "0"
    )


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
    assert ("hold 1Gi",) == arguments(image, (), "hold 1Gi")


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
def test_any_other_program_is_refused(image: str, command: tuple[str, ...], shown: str) -> None:
    """
    Any other program is refused with what would run.
    """
    with pytest.raises(RefusedPodError) as caught:
        arguments(image, command)

    assert str(caught.value).startswith(f"{shown} is no simulator workload; this node runs only")


@pytest.mark.parametrize(
    ("containers", "fields", "message"),
    [
        ([container(), container("b", image="busybox")], {}, "image busybox"),
        ([container()], {"spec": {"initContainers": [container()]}}, "init containers: not simul"),
        ([container()], {"volumes": ({"name": "d", "hostPath": {}},)}, "volume d: hostPath is not"),
    ],
)
def test_a_pod_of_which_anything_cannot_run_is_refused(
    containers: list[dict[str, Any]], fields: dict[str, Any], message: str
) -> None:
    """
    One foreign program, an init container or a volume on a disk keeps the whole pod out.
    """
    with pytest.raises(RefusedPodError, match=message):
        check_pod(pod(*containers, **fields))


def test_a_pod_of_workloads_may_run() -> None:
    """
    A pod whose containers all are workloads may run, with volumes made of the API's text.
    """
    token: dict[str, Any] = {"projected": {"sources": [{"serviceAccountToken": {}}]}}
    volumes = ({"name": "a", "emptyDir": {}}, {"name": "b", **token})

    check_pod(pod(container("a"), container("b"), volumes=volumes))
