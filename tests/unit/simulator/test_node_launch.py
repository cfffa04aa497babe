"""What a simulated node starts for a pod, and in which machine."""

from dataclasses import replace
from typing import Any

import pytest

from gpufence.cards import Card, Instance
from gpufence.dialects import Units
from gpufence.nodes import read_node
from gpufence.quantity import GIB, MIB
from simulator.node.api import node_object
from simulator.node.errors import RefusedPodError
from simulator.node.launch import check_pod, program_of, workload_arguments
from simulator.node.machine import (
    WHOLE,
    GpuMachine,
    Placement,
    device_variables,
    gpu_capacity,
    labels,
    place,
)
from simulator.node.pod import RestartPolicy, VolumeMount, cgroup_lines, cgroup_path, read_pod
from tests.unit.simulator.builders import ADDRESS, card, container, pod

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


@pytest.mark.parametrize(("words", "runs"), [(["sleep", "9"], True), (["sleep", "9; id"], False)])
def test_a_sleep_runs_as_it_is(words: list[str], runs: bool) -> None:  # noqa: FBT001 - a row of the table
    """It does nothing to the machine; whatever else is beside it is refused."""
    made = pod(container(image="registry.example.com/other", command=words))
    if not runs:
        with pytest.raises(RefusedPodError, match="is no simulator workload"):
            check_pod(made)
        return
    check_pod(made)

    assert ("sleep", "9") == program_of(made.containers[0], tuple(words))


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
    line = cgroup_lines(cgroup_path(replace(pod(), quality=quality), ID))

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


T4S = (card(0), card(1))
CUT = (card(0), Card("MIG-0", 0, "Tesla T4", GIB, (8, 0), Instance("GPU-0", "1g.5gb")), card(1))


def machine(*cards: Card, unit: str = "GiB") -> GpuMachine:
    return GpuMachine("node-a", ADDRESS, cards or T4S, unit)


def asking(units: str, name: str = "main") -> dict[str, Any]:
    return container(name, resources={"limits": {"aliyun.com/gpu-mem": units}})


@pytest.mark.parametrize(
    ("offering", "memory", "count"),
    [
        (machine(), "30", "2"),
        (machine(unit="MiB"), "30720", "2"),
        (machine(card(0, 12282), card(1, 40960)), "22", "2"),
        (machine(*CUT), "15", "1"),
    ],
    ids=["GiB", "MiB", "unequal", "cut"],
)
def test_memory_is_offered_as_gpushare_counts_it(
    offering: GpuMachine, memory: str, count: str
) -> None:
    """Every whole card counts as much as the first, rounded down to units."""
    assert {"aliyun.com/gpu-mem": memory, "aliyun.com/gpu-count": count} == gpu_capacity(offering)


def test_a_machine_whose_cards_are_all_cut_offers_none() -> None:
    """Without a whole card there is nothing to share."""
    assert {} == gpu_capacity(machine(*CUT[:2]))


def test_the_labels_are_those_of_a_real_node() -> None:
    """A node carries Kubernetes' own labels, gpushare's, and those of GPU feature discovery."""
    assert {
        "kubernetes.io/hostname": "node-a",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "gpushare": "true",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.product": "Tesla-T4",
        "nvidia.com/gpu.memory": "15360",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.compute.major": "7",
        "nvidia.com/gpu.compute.minor": "5",
    } == labels(machine())


def test_the_product_reads_cards_and_units_out_of_the_node() -> None:
    """What the Node says about cards and units is what gpufence reads from it."""
    node = read_node(node_object(machine()), Units())
    assert node is not None

    assert (GIB, 15360 * MIB) == (node.units.gpushare_bytes, node.cards[0].memory_bytes)


@pytest.mark.parametrize(
    ("taken", "annotations", "expected"),
    [
        ({}, {}, "GPU-0"),
        ({"GPU-0": GIB}, {}, "GPU-1"),
        ({}, {"ALIYUN_COM_GPU_MEM_IDX": "1"}, "GPU-1"),
        ({}, {"ALIYUN_COM_GPU_MEM_IDX": "7"}, "GPU-0"),
    ],
    ids=["first", "most left", "assigned", "assigned elsewhere"],
)
def test_a_pod_gets_one_card(
    taken: dict[str, int], annotations: dict[str, str], expected: str
) -> None:
    """The card that gpushare's scheduler wrote down is taken, else the one with most left."""
    both = pod(asking("3", "a"), asking("5", "b"), annotations=annotations)
    placement = place(both, machine(), taken)

    assert ([expected], 8 * GIB) == ([card.uuid for card in placement.cards], placement.declared)


def test_who_asks_for_nothing_gets_no_card() -> None:
    """A pod without an amount, or on a machine without a whole card, has no card."""
    assert Placement() == place(pod(), machine(), {})
    assert Placement() == place(pod(asking("3")), machine(*CUT[:2]), {})


@pytest.mark.parametrize(("cards", "visible"), [(T4S, "0"), (T4S[:1], "GPU-0")])
def test_the_device_plugin_names_card_and_units(cards: tuple[Card, ...], visible: str) -> None:
    """Gpushare's device plugin names a card by index, a single one by UUID, and units."""
    asker, other = pod(asking("3"), container("other")).containers

    assert {
        "NVIDIA_VISIBLE_DEVICES": visible,
        "ALIYUN_COM_GPU_MEM_IDX": "0",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "3",
        "ALIYUN_COM_GPU_MEM_POD": "3",
    } == device_variables(asker, (card(0),), machine(*cards))
    assert {} == device_variables(other, (card(0),), machine(*cards))


def test_cards_may_be_handed_out_whole() -> None:
    """As by NVIDIA's device plugin: as many cards as were asked for, free ones first."""
    whole = machine(unit=WHOLE)
    one, two = (
        pod(container("main", resources={"limits": {"nvidia.com/gpu": count}}))
        for count in ("1", "2")
    )
    placement = place(one, whole, {"GPU-0": 15 * GIB})
    both = place(two, whole, {})

    assert {"nvidia.com/gpu": "2"} == gpu_capacity(whole)
    assert "gpushare" not in labels(whole)
    assert ["GPU-1"] == [card.uuid for card in placement.cards]
    assert {"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"} == device_variables(
        two.containers[0], both.cards, whole
    )


LINE = "0::/kubepods.slice/x.scope\n"
