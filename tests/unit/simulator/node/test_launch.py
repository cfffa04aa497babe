"""Which pods can run here, how they are read, and the command line of the node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulator.node.__main__ import _parser, main
from simulator.node.errors import RefusedPodError
from simulator.node.launch import check_pod, workload_arguments
from simulator.node.node import NodeOptions
from simulator.node.pod import RestartPolicy, VolumeMount, cgroup_line, read_pod
from tests.unit.simulator.node.builders import container, pod

WORKLOAD = ("-m", "simulator", "workload")


def arguments(image: str, command: tuple[str, ...], *args: str) -> tuple[str, ...]:
    (main,) = pod(container(image=image, command=list(command), args=list(args))).containers
    return workload_arguments(main, (*command, *args))


@pytest.mark.parametrize("python", ["python", "python3", "python3.12", "/usr/bin/python3"])
def test_a_command_of_the_workload_runs(python: str) -> None:
    """Any Python that runs the workload's module does, whatever the image."""
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
    """The workload's image, under any registry and tag, needs only arguments."""
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
    """Any other program is refused with what would run."""
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
    """One foreign program, an init container or a volume on a disk keeps the whole pod out."""
    with pytest.raises(RefusedPodError, match=message):
        check_pod(pod(*containers, **fields))


def test_a_pod_of_workloads_may_run() -> None:
    """A pod whose containers all are workloads may run, with volumes made of the API's text."""
    token: dict[str, Any] = {"projected": {"sources": [{"serviceAccountToken": {}}]}}
    volumes = ({"name": "a", "emptyDir": {}}, {"name": "b", **token})

    check_pod(pod(container("a"), container("b"), volumes=volumes))


ID = "ab" * 32
POD = "pod11111111_2222_3333_4444_555555555555"


@pytest.mark.parametrize(
    ("quality", "folders"),
    [
        ("Guaranteed", f"kubepods.slice/kubepods-{POD}.slice"),
        ("Burstable", f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{POD}.slice"),
        ("BestEffort", f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-{POD}.slice"),
    ],
)
def test_the_cgroup_line_is_that_of_a_real_node(quality: str, folders: str) -> None:
    """The path has a level for the class of service, but not for Guaranteed."""
    line = cgroup_line(replace(pod(), quality=quality), ID)

    assert f"0::/{folders}/cri-containerd-{ID}.scope\n" == line


def test_a_deleted_pod_has_the_grace_of_its_deletion() -> None:
    """With a deletion timestamp the pod carries the grace it was deleted with, without it none."""
    deleted = pod(deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=7)

    assert (7, None) == (deleted.deletion_grace, pod().deletion_grace)


def test_what_is_missing_has_the_defaults_of_kubernetes() -> None:
    """A pod that says next to nothing restarts always, after 30 s of grace, with best effort."""
    read = read_pod({"metadata": {}, "spec": {"terminationGracePeriodSeconds": -1}})

    assert (RestartPolicy.ALWAYS, 30, "BestEffort") == (read.restart, read.grace, read.quality)


def test_mounts_are_read() -> None:
    """A mount has a volume, a path, and maybe a path in the volume."""
    mounts = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "c"}]
    (main,) = pod(container(volumeMounts=mounts)).containers

    assert (VolumeMount("v", "/a", ""), VolumeMount("v", "/b", "c")) == main.mounts


def test_what_is_not_simulated_is_named() -> None:
    """Init containers and `envFrom` are seen, so that the node can refuse the pod."""
    both = pod(container(envFrom=[{"configMapRef": {}}]), spec={"initContainers": [container()]})

    assert ("init containers", "envFrom") == both.unsupported
    assert "team-a/trainer" == both.full_name


def options(*words: str) -> NodeOptions:
    return NodeOptions(**vars(_parser().parse_args(["--kubeconfig", "/k", *words])))


def test_each_option_reaches_the_node() -> None:
    """Whatever is named on the command line is what the node is asked to be."""
    words = (
        "--admin-kubeconfig",
        "/a",
        "--name",
        "n",
        "--cards",
        "T4,T4",
        "--gpushare-unit",
        "MiB",
    )

    assert options(*words) == NodeOptions(
        kubeconfig=Path("/k"), name="n", admin_kubeconfig=Path("/a"), cards="T4,T4", unit="MiB"
    )


def test_without_options_it_is_one_plain_node() -> None:
    """The command's defaults are those of a program that names nothing."""
    assert options() == NodeOptions(kubeconfig=Path("/k"))


def test_a_cluster_must_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any kubeconfig the command says how to give one."""
    monkeypatch.delenv("KUBECONFIG", raising=False)

    assert 2 == main([])
    assert "name --kubeconfig or set KUBECONFIG" in capsys.readouterr().err
