"""What each dialect declares: containers with bytes on a T4 and their cards, and in what words."""

from typing import Any

import pytest

from gpufence.dialects import Units
from gpufence.quantity import GIB, MIB
from tests.support.builders import T4_BYTES, container, gpushare, pod
from tests.unit.gpufence.dialects.declared import amounts, declared

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
VOLCANO = "volcano.sh/gpu-memory"
VGPU = "volcano.sh/vgpu"
SELECTED = {
    "clients": "cloud.google.com/gke-max-shared-clients-per-gpu",
    "strategy": "cloud.google.com/gke-gpu-sharing-strategy",
}
GIB_NODE, IN_MIB, BY_TEN = Units(), Units(gpushare_bytes=MIB), Units(volcano_factor=10)
TWO, FOUR, MPS = Units(clients=2), Units(clients=4), Units(clients=4, driver_caps=True)
IN_MEBIBYTES = "gpushare: units of 1Mi (MiB node)"
BY_ONE_VGPU = "volcano-vgpu: units of 1 MiB for each vGPU, capped"
BY_TEN_VGPU = "volcano-vgpu: units of 10 MiB for each vGPU, capped"
HAMI = "hami: MiB on each card, capped"
QUARTERS = "nvidia: a card shared by 4, implied"
WHOLE = "nvidia: whole cards, implied"
SLICES = "mig: MIG instances of 1g.5gb, implied"


def asking(text: str) -> dict[str, Any]:
    """Build a pod of one container that asks so: resources, KAI's annotations, what it selects."""
    asked = dict(word.split("=") for word in text.split())
    limits = {key: value for key, value in asked.items() if "/" in key}
    annotations = {key: value for key, value in asked.items() if key.startswith("gpu-")}
    selector = {SELECTED[key]: value for key, value in asked.items() if key in SELECTED}
    return pod(container(**limits), annotations=annotations, nodeSelector=selector)


@pytest.mark.parametrize(
    ("asked", "units", "words", "size", "cards"),
    [
        ("aliyun.com/gpu-mem=3", GIB_NODE, "gpushare: units of 1Gi", 3 * GIB, 1),
        ("aliyun.com/gpu-mem=3803", IN_MIB, IN_MEBIBYTES, 3803 * MIB, 1),
        ("aliyun.com/gpu-mem=1k", IN_MIB, IN_MEBIBYTES, 1000 * MIB, 1),
        (f"{VOLCANO}=400", GIB_NODE, "volcano: units of 1 MiB", 400 * MIB, 1),
        (f"{VOLCANO}=400", BY_TEN, "volcano: units of 10 MiB", 4000 * MIB, 1),
        ("volcano.sh/gpu-number=2", GIB_NODE, "volcano: whole cards, implied", T4_BYTES, 2),
        (f"{VGPU}-memory=2048", BY_TEN, BY_TEN_VGPU, 20480 * MIB, 1),
        (f"{VGPU}-memory=100 {VGPU}-number=2", BY_TEN, BY_TEN_VGPU, 1000 * MIB, 2),
        (f"{VGPU}-memory=1 {VGPU}-memory-percentage=5", BY_TEN, BY_TEN_VGPU, 10 * MIB, 1),
        (f"{VGPU}-memory-percentage=50", GIB_NODE, BY_ONE_VGPU, T4_BYTES // 2, 1),
        (f"{VGPU}-number=1", GIB_NODE, BY_ONE_VGPU, T4_BYTES, 1),
        ("nvidia.com/gpumem=3000", GIB_NODE, HAMI, 3000 * MIB, 1),
        (f"nvidia.com/gpumem=3000 {GPU}=2", GIB_NODE, HAMI, 3000 * MIB, 2),
        (f"nvidia.com/gpumem-percentage=25 {GPU}=1", GIB_NODE, HAMI, T4_BYTES // 4, 1),
        ("nvidia.com/gpumem-percentage=100", GIB_NODE, HAMI, T4_BYTES, 1),
        ("gpu-memory=4096", GIB_NODE, "kai: MiB on each card", 4096 * MIB, 1),
        ("gpu-fraction=0.25", GIB_NODE, "kai: a share of each card", T4_BYTES // 4, 1),
        ("gpu-fraction=.5", GIB_NODE, "kai: a share of each card", T4_BYTES // 2, 1),
        ("gpu-memory=9 gpu-fraction-num-devices=3", GIB_NODE, "kai: MiB on each card", 9 * MIB, 3),
        (f"{GPU}=2", GIB_NODE, WHOLE, T4_BYTES, 2),
        (f"{GPU}=1", Units(driver_caps=True), WHOLE, T4_BYTES, 1),
        (f"{GPU}=1", FOUR, QUARTERS, T4_BYTES // 4, 1),
        (f"{GPU}=2", FOUR, QUARTERS, T4_BYTES // 2, 1),
        (f"{GPU}=9", FOUR, QUARTERS, T4_BYTES, 1),
        (f"{GPU}=1", MPS, "nvidia: a card shared by 4, capped, implied", T4_BYTES // 4, 1),
        (f"{GPU}.shared=1", TWO, "nvidia: a card shared by 2, implied", T4_BYTES // 2, 1),
        (f"{GPU}=1 clients=4 strategy=time-sharing", TWO, QUARTERS, T4_BYTES // 4, 1),
        (
            f"{GPU}=1 clients=2 strategy=MPS",
            GIB_NODE,
            "nvidia: a card shared by 2, capped, implied",
            T4_BYTES // 2,
            1,
        ),
        (f"{MIG}=1", GIB_NODE, SLICES, T4_BYTES, 1),
        (f"{MIG}.shared=1", GIB_NODE, SLICES, T4_BYTES, 1),
    ],
)
def test_one_container(asked: str, units: Units, words: str, size: int, cards: int) -> None:
    """
    What is asked for is so many bytes on so many cards; nobody wrote what is implied, and what is
    capped needs no settings.
    """
    found = declared(asking(asked), units)
    capped = ", capped" if found.library_caps else ""
    implied = ", implied" if found.implied else ""

    assert {"main": (size, cards)} == amounts(found)
    assert words == f"{found.dialect}: {found.basis}{capped}{implied}"


def test_a_container_without_memory_has_the_card() -> None:
    """Beside a container with an amount of HAMi's, one that only asks for a card has all of it."""
    raw = pod(container("a", **{"nvidia.com/gpumem": "3000"}), container("b", **{GPU: "1"}))

    assert {"a": (3000 * MIB, 1), "b": (T4_BYTES, 1)} == amounts(declared(raw))


@pytest.mark.parametrize(
    ("wanted", "chosen"), [({}, "a"), ({"gpu-fraction-container-name": "b"}, "b")]
)
def test_one_container_has_kais_share(wanted: dict[str, str], chosen: str) -> None:
    """The first regular container has it unless another one is named."""
    annotations = {"gpu-fraction": "0.5"} | wanted
    early, both = [container("warm")], (container("a"), container("b"))
    found = declared(pod(*both, init=early, annotations=annotations))

    assert [chosen] == [claim.container for claim in found.claims]


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        (pod(gpushare()), ""),
        (
            pod(gpushare("a"), gpushare("b")),
            (
                'aliyun.com/gpu-mem: "a, b" is asked for by several containers, which gpushare '
                "starts on one-card nodes only; ask for it in one container"
            ),
        ),
        (
            pod(init=[gpushare("warm")]),
            (
                'aliyun.com/gpu-mem: "warm" is asked for by an init container, which gpushare does '
                "not count; ask for it in a regular container"
            ),
        ),
        (
            pod(*(container(name, **{VOLCANO: "1"}) for name in "ab")),
            (
                'volcano.sh/gpu-memory: "a, b" is asked for by several containers, of which '
                "Volcano starts only one; ask for it in one container"
            ),
        ),
    ],
    ids=["usual", "gpushare, several", "gpushare, early", "volcano, several"],
)
def test_notes(raw: dict[str, Any], note: str) -> None:
    """What a scheduler does otherwise than it looks is worth a warning, the usual pod none."""
    assert note == "".join(each.sentence for each in declared(raw).notes)
