"""Which node, and which card of it, a pod may be on."""

from typing import Any

import pytest

from gpufence.candidates import (
    CandidateCard,
    assigned_card,
    candidate_cards,
    usable_cards,
    wanted_resources,
)
from gpufence.dialects import Units
from gpufence.nodes import GpuNode, read_node, tolerates
from gpufence.pods import Pod, read_pod
from gpufence.quantity import GIB, MIB
from tests.support.builders import A100_BYTES, T4_BYTES, card, container, gpushare, node, pod

DEFAULT = CandidateCard(Units(gpushare_bytes=MIB), 8 * GIB, (8, 6))
WHOLE = read_pod(pod(gpushare()))


def read(*raw: dict[str, Any]) -> list[GpuNode]:
    found = [read_node(item, Units()) for item in raw]
    return [item for item in found if item is not None]


def sliced(profile: str) -> Pod:
    return read_pod(pod(container(**{f"nvidia.com/mig-{profile}": "1"})))


@pytest.mark.parametrize(
    ("limits", "offered"),
    [
        ({"aliyun.com/gpu-mem": "3"}, "aliyun.com/gpu-mem"),
        ({"nvidia.com/mig-1g.5gb": "1"}, "nvidia.com/mig-1g.5gb"),
        ({"nvidia.com/gpumem": "3000"}, "nvidia.com/gpu"),
        ({"nvidia.com/gpumem-percentage": "50", "nvidia.com/gpu": "1"}, "nvidia.com/gpu"),
        ({"volcano.sh/vgpu-memory-percentage": "50"}, "volcano.sh/vgpu-number"),
        ({"aliyun.com/gpu-mem": "3", "nvidia.com/gpu": "0"}, "aliyun.com/gpu-mem"),
        ({"aliyun.com/gpu-mem": "3", "nvidia.com/gpu": 0}, "aliyun.com/gpu-mem"),
        ({"cpu": "64", "aliyun.com/gpu-mem": "3"}, "aliyun.com/gpu-mem"),
        ({"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "0"}, "nvidia.com/gpu"),
    ],
)
def test_a_node_must_offer_what_the_pod_asks_for(limits: dict[str, Any], offered: str) -> None:
    """Parameters that no node lists count as the resource they refine; a zero asks for nothing."""
    early = pod(gpushare(), init=[container("warm", **limits)])

    assert {offered} == wanted_resources(read_pod(pod(container(**limits))))
    assert {offered, "aliyun.com/gpu-mem"} == wanted_resources(read_pod(early))


def test_every_different_card_is_one_choice() -> None:
    """
    A hundred equal cards are one choice, a card of another size is a second. Where no node is, or
    none tells its cards, the operator's default stands in, in the node's own unit.
    """
    nodes = read(
        node(card(0), card(1), name="a"),
        node(card(0), name="b"),
        node(
            card(0, memory_bytes=A100_BYTES, compute_capability=(8, 0)),
            name="c",
            allocatable={"aliyun.com/gpu-mem": "40"},
        ),
    )

    assert (
        CandidateCard(Units(gpushare_bytes=GIB), T4_BYTES, (7, 5)),
        CandidateCard(Units(gpushare_bytes=GIB), A100_BYTES, (8, 0)),
    ) == candidate_cards(read_pod(pod(gpushare())), nodes, DEFAULT)
    assert (DEFAULT,) == candidate_cards(read_pod(pod(gpushare())), [], DEFAULT)
    assert (CandidateCard(Units(gpushare_bytes=GIB), 8 * GIB, (8, 6)),) == candidate_cards(
        read_pod(pod(gpushare())), read(node()), DEFAULT
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [("15", 15 * GIB), ("no number", 8 * GIB), ("0", 8 * GIB), ("9000000", 8 * GIB)],
)
def test_a_node_without_cards_has_the_card_its_scheduler_wrote_down(
    said: str, expected: int
) -> None:
    """Where the node tells nothing, the size gpushare wrote on the pod counts in its unit."""
    (silent,) = read(node(allocatable={"aliyun.com/gpu-mem": "15"}))
    wanted = read_pod(pod(gpushare("main", 3), annotations={"ALIYUN_COM_GPU_MEM_DEV": said}))

    assert (CandidateCard(Units(gpushare_bytes=GIB), expected, (8, 6)),) == candidate_cards(
        wanted, [silent], DEFAULT
    )


def test_a_scheduler_s_word_counts_for_nothing_where_the_unit_is_unknown() -> None:
    """Without a certain unit, the units the scheduler wrote are no size."""
    units = Units(gpushare_bytes=None)
    silent = GpuNode("n", {}, frozenset({"aliyun.com/gpu-mem"}), (), units)
    wanted = read_pod(pod(gpushare("main", 3), annotations={"ALIYUN_COM_GPU_MEM_DEV": "15"}))

    assert (CandidateCard(units, 8 * GIB, (8, 6)),) == candidate_cards(wanted, [silent], DEFAULT)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.shared"])
def test_a_slice_is_chosen_among_slices(resource: str) -> None:
    """A pod with a MIG profile meets instances of that profile, not whole cards."""
    instance = card(0, memory_bytes=5 * GIB, parent="GPU-0", profile="1g.5gb")
    nodes = read(node(card(0), card(1), instance, allocatable={resource: "1"}))
    (choice,) = candidate_cards(read_pod(pod(container(**{resource: "1"}))), nodes, DEFAULT)

    assert 5 * GIB == choice.memory_bytes


@pytest.mark.parametrize(
    ("annotations", "index"),
    [
        ({}, None),
        ({"ALIYUN_COM_GPU_MEM_IDX": "0"}, 0),
        ({"ALIYUN_COM_GPU_MEM_IDX": "-1"}, None),
        ({"volcano.sh/gpu-index": "3"}, 3),
        ({"volcano.sh/gpu-index": "1,2"}, None),
    ],
)
def test_schedulers_write_down_the_card(annotations: dict[str, str], index: int | None) -> None:
    """One index is an assignment; none, several or a failed one is not."""
    assert index == assigned_card(read_pod(pod(annotations=annotations)))


def test_a_pod_meets_instances_of_its_profile() -> None:
    """
    Who asks for a profile meets no other; resource names write a plus as a dot. A card that is cut
    serves nobody whole, unless all are: then instances are handed out as if they were cards.
    """
    small = card(0, parent="GPU-0", profile="1g.5gb")
    media = card(1, parent="GPU-0", profile="1g.5gb+me")
    [cut], [mixed] = read(node(card(0), small, media)), read(node(card(0), small, card(1)))

    assert (small,) == usable_cards(sliced("1g.5gb"), cut)
    assert (media,) == usable_cards(sliced("1g.5gb.me"), cut)
    assert () == usable_cards(sliced("7g.40gb"), cut)
    assert (small, media) == usable_cards(WHOLE, cut)
    assert (card(1),) == usable_cards(WHOLE, mixed)


@pytest.mark.parametrize(("index", "met"), [(None, (0, 1)), (1, (1,)), (7, (0, 1))])
def test_an_assigned_card_is_the_only_one(index: int | None, met: tuple[int, ...]) -> None:
    """Once a scheduler has said which card, no other counts; one that is not there says nothing."""
    [found] = read(node(card(0), card(1)))

    annotations = {} if index is None else {"volcano.sh/gpu-index": str(index)}
    assigned = read_pod(pod(gpushare(), annotations=annotations))

    assert met == tuple(item.index for item in usable_cards(assigned, found))


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
    ],
)
def test_a_toleration_covers_a_taint(toleration: dict[str, str], *, expected: bool) -> None:
    """Key, operator, value and effect count as they do to the scheduler."""
    assert expected == tolerates([toleration], [TAINT])


def test_each_taint_that_repels_must_be_tolerated() -> None:
    """No toleration, no place; a taint that only prefers others repels nobody."""
    soft = {"key": "spot", "effect": "PreferNoSchedule"}

    assert not tolerates([], [TAINT])
    assert tolerates([], [soft])
    assert not tolerates(
        [{"key": "gpu", "operator": "Exists"}], [TAINT, soft | TAINT | {"key": "b"}]
    )
