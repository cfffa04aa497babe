"""What pods declare in every dialect, and what of it cannot be read."""

from typing import Any

import pytest

from gpufence.dialects import (
    GPU_RESOURCES,
    Amount,
    Declared,
    Undeclared,
    Units,
    Unreadable,
    read_declaration,
)
from gpufence.pods import read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import T4_BYTES, container, gpushare, pod


def said(raw: dict[str, Any], units: Units | None = None) -> Declared | Undeclared | Unreadable:
    return read_declaration(read_pod(raw), units or Units())


def declared(raw: dict[str, Any], units: Units | None = None) -> Declared:
    """Return what the pod declares, failing where it declares nothing readable."""
    found = said(raw, units)
    assert isinstance(found, Declared), found
    return found


def unreadable(raw: dict[str, Any], units: Units | None = None) -> Unreadable:
    """Return why the pod cannot be read, failing where it can."""
    found = said(raw, units)
    assert isinstance(found, Unreadable), found
    return found


def amounts(found: Declared) -> dict[str, tuple[int | None, int]]:
    """Return bytes on a T4 and the number of cards, by container."""
    return {
        claim.container: (claim.amount.on_card(15360 * 2**20), claim.cards)
        for claim in found.claims
    }


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


CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
DOUBTFUL = Units(gpushare_bytes=None)
KAI_MEMORY = (
    "is no usable number of bare MiB, and KAI ignores such without a word; "
    'write the MiB alone, such as "4096"'
)


def kai(**annotations: str) -> dict[str, Any]:
    return pod(annotations={key.replace("_", "-"): text for key, text in annotations.items()})


OTHER_UNIT = "write GiB, or where nodes count MiB set GPUFENCE_GPUSHARE_UNIT=MiB for the webhook"


@pytest.mark.parametrize(
    ("raw", "units", "sentence"),
    [
        (
            pod(gpushare()),
            DOUBTFUL,
            (
                'aliyun.com/gpu-mem: "3" has no certain unit: the node\'s figures fit neither GiB '
                "nor MiB; compare its allocatable aliyun.com/gpu-mem and aliyun.com/gpu-count with "
                "its cards"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_memory="4096"),
            Units(),
            (
                'metadata.annotations[gpu-memory]: "4096" stands beside gpu-fraction, and KAI '
                "takes only one of them; remove one of the two annotations"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_fraction_num_devices="0"),
            Units(),
            (
                'metadata.annotations[gpu-fraction-num-devices]: "0" is not a usable whole number; '
                "write a number from 1 to 1024"
            ),
        ),
        (
            kai(gpu_fraction="0.5", gpu_fraction_container_name="other"),
            Units(),
            (
                'metadata.annotations[gpu-fraction-container-name]: "other" names no container of '
                "the pod; write one of main"
            ),
        ),
        (
            pod(container(**{"nvidia.com/gpu": "1"}), nodeSelector={CLIENTS: "many"}),
            Units(),
            (
                f'nodeSelector[{CLIENTS}]: "many" is not a usable whole number; '
                "write a number from 1 to 2147483648"
            ),
        ),
        (
            pod(container(**{"nvidia.com/mig-1g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"})),
            Units(),
            (
                'resources.limits: "nvidia.com/mig-1g.5gb, nvidia.com/mig-2g.10gb" are MIG slices '
                "of several sizes in one pod; ask for one profile in each pod"
            ),
        ),
        (
            pod(
                container("a", **{"nvidia.com/mig-1g.5gb": "1"}),
                container("b", **{"nvidia.com/gpu": "1"}),
            ),
            Units(),
            (
                'resources.limits: "nvidia (whole cards), mig (MIG instances of 1g.5gb)" are two '
                "ways to declare GPU memory in one pod; keep the one whose scheduler runs the pod"
            ),
        ),
    ],
)
def test_a_mistake_is_named(raw: dict[str, Any], units: Units, sentence: str) -> None:
    """A person who reads the sentence knows where the mistake is and what to write instead."""
    found = unreadable(raw, units)

    assert sentence == found.problem.sentence
    assert (units is not DOUBTFUL) == found.own_words


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        *(
            (kai(gpu_memory=text), f'metadata.annotations[gpu-memory]: "{text}" {KAI_MEMORY}')
            for text in ("2000mb", "8000Mi", "", "0", "-1", "1.5", "4194305")
        ),
        *(
            (
                kai(gpu_fraction=text),
                (
                    f'metadata.annotations[gpu-fraction]: "{text}" is not a share between 0 and 1; '
                    'write a decimal such as "0.25"'
                ),
            )
            for text in ("0", "0.0", "1", "1.0", "25%", "", "-0.5", "0.5 ")
        ),
        *(
            (
                pod(container(**{resource: "101"})),
                (
                    f'spec.containers[0].resources.limits[{resource}]: "101" is more than a whole '
                    "card; write a percentage from 1 to 100"
                ),
            )
            for resource in ("volcano.sh/vgpu-memory-percentage", "nvidia.com/gpumem-percentage")
        ),
        *(
            (
                pod(gpushare(units=text)),
                (
                    f'spec.containers[0].resources.limits[aliyun.com/gpu-mem]: "{text}" is {units} '
                    f"units of 1073741824 bytes, more than any card holds; {remedy}"
                ),
            )
            for text, units, remedy in (
                ("10G", 10**10, "write the plain number of units, without a suffix"),
                ("9e18", 9 * 10**18, "write the plain number of units, without a suffix"),
                ("4097", 4097, OTHER_UNIT),
            )
        ),
    ],
)
def test_what_no_node_can_serve_is_named(raw: dict[str, Any], sentence: str) -> None:
    """A pod that its own scheduler cannot place, or ignores, waits for ever unless that is said."""
    found = unreadable(raw)

    assert sentence == found.problem.sentence
    assert found.own_words


def test_a_number_of_devices_alone_declares_nothing() -> None:
    """Without memory or fraction KAI has no amount."""
    assert isinstance(said(kai(gpu_fraction_num_devices="2")), Undeclared)


def test_a_pod_without_gpu_is_undeclared() -> None:
    """No known resource and no known annotation is no declaration."""
    assert Undeclared("no container asks for GPU memory in a way gpufence knows") == said(pod())


def test_resource_claims_are_named_as_unsupported() -> None:
    """A pod that gets its devices by DRA is told why gpufence says nothing about it."""
    found = said(pod(resourceClaims=[{"name": "gpu"}]))

    assert isinstance(found, Undeclared)
    assert "resource claims (DRA)" in found.reason


def test_two_systems_in_one_pod_are_unreadable() -> None:
    """Each scheduler keeps its own books, so no limit fits both; both are named."""
    found = unreadable(pod(gpushare("a"), container("b", **{"nvidia.com/gpu": "1"})))

    assert found.own_words
    assert (
        'resources.limits: "gpushare (units of 1Gi), nvidia (whole cards)" '
        "are two ways to declare GPU memory in one pod; keep the one whose scheduler runs the pod"
    ) == found.problem.sentence


def test_two_ways_of_one_system_are_told_apart() -> None:
    """Volcano's shares and whole cards are named by what they count."""
    limits = {"volcano.sh/gpu-memory": "1024", "volcano.sh/gpu-number": "1"}
    found = unreadable(pod(container(**limits)))

    assert "volcano (units of 1 MiB), volcano (whole cards)" == found.problem.value


@pytest.mark.parametrize(
    "resource", ["aliyun.com/gpu-mem", "volcano.sh/gpu-memory", "nvidia.com/gpu"]
)
@pytest.mark.parametrize("value", ["x", "1.5", "-1"])
def test_a_count_that_cannot_be_read_is_unreadable(resource: str, value: str) -> None:
    """A malformed number is a problem with its field, never a zero."""
    found = unreadable(pod(container(**{resource: value})))

    assert f"spec.containers[0].resources.limits[{resource}]" == found.problem.field
    assert value == found.problem.value


@pytest.mark.parametrize("resource", [*GPU_RESOURCES, "nvidia.com/mig-1g.5gb"])
def test_zero_asks_for_nothing(resource: str) -> None:
    """A limit of zero declares nothing, as it reserves nothing."""
    assert isinstance(said(pod(container(**{resource: "0"}))), Undeclared)


def test_a_zero_beside_a_real_request_is_no_second_dialect() -> None:
    """A chart that writes zero for the resources it does not use is read by the one it does."""
    found = said(pod(container(**{"aliyun.com/gpu-mem": "3", "nvidia.com/gpu": "0"})))

    assert not isinstance(found, Undeclared)


@pytest.mark.parametrize(
    ("amount", "card", "size"),
    [
        (Amount(GIB), None, GIB),
        (Amount(GIB), 4 * GIB, GIB),
        (Amount(share=(1, 3)), 10, 3),
        (Amount(share=(1, 4)), None, None),
    ],
)
def test_a_share_needs_a_card(amount: Amount, card: int | None, size: int | None) -> None:
    """Bytes are bytes anywhere; a share is rounded down on a known card and unknown without one."""
    assert size == amount.on_card(card)
