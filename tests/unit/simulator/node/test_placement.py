"""
Which cards pods get, and how they learn of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpufence.quantity import GIB, MIB
from simulator.node.placement import Placement, device_variables, place
from simulator.node.sharing import Dialect, Sharing
from tests.unit.simulator.node.builders import card, container, instance, pod

if TYPE_CHECKING:
    from simulator.node.pod import Pod

TWO = (card(0), card(1))
GPUSHARE = Sharing(Dialect.GPUSHARE)
VOLCANO = Sharing(Dialect.VOLCANO)
NVIDIA = Sharing(Dialect.NVIDIA)
SLICED = Sharing(Dialect.TIME_SLICING, replicas=4)
HAMI = Sharing(Dialect.HAMI, replicas=10)


def asking(name: str = "main", **limits: str) -> dict[str, Any]:
    keys = {
        "mem": "aliyun.com/gpu-mem",
        "volcano": "volcano.sh/gpu-memory",
        "number": "volcano.sh/gpu-number",
        "gpu": "nvidia.com/gpu",
        "gpumem": "nvidia.com/gpumem",
        "mig": "nvidia.com/mig-1g.5gb",
    }
    return container(name, resources={"limits": {keys[key]: limits[key] for key in limits}})


def chosen(placement: Placement, name: str = "main") -> list[str]:
    return [one.uuid for one in placement.cards.get(name, ())]


def test_the_card_with_most_undeclared_memory_is_chosen() -> None:
    """
    Without a scheduler's choice a pod gets the card of which least is declared.
    """
    found = place(pod(asking(mem="3")), TWO, GPUSHARE, {"GPU-0": GIB})

    assert ["GPU-1"] == chosen(found)


def test_the_first_of_equal_cards_is_chosen() -> None:
    """
    Among equal cards the lowest index wins.
    """
    assert ["GPU-0"] == chosen(place(pod(asking(mem="3")), TWO, GPUSHARE, {}))


def test_a_larger_card_has_more_left() -> None:
    """
    What is left counts, not what is taken.
    """
    cards = (card(0, 15360), card(1, 40960))

    assert ["GPU-1"] == chosen(place(pod(asking(mem="3")), cards, GPUSHARE, {"GPU-1": 20 * GIB}))


@pytest.mark.parametrize(
    ("key", "index", "expected"),
    [
        ("ALIYUN_COM_GPU_MEM_IDX", "1", "GPU-1"),
        ("volcano.sh/gpu-index", "1", "GPU-1"),
        ("ALIYUN_COM_GPU_MEM_IDX", "7", "GPU-0"),
        ("ALIYUN_COM_GPU_MEM_IDX", "-1", "GPU-0"),
    ],
)
def test_a_schedulers_choice_counts(key: str, index: str, expected: str) -> None:
    """
    The card that a scheduler wrote down is taken, if the node has it.
    """
    found = place(pod(asking(mem="3"), annotations={key: index}), TWO, GPUSHARE, {})

    assert [expected] == chosen(found)


def test_containers_that_share_by_amount_share_one_card() -> None:
    """
    All containers of a pod that ask for an amount are on one card.
    """
    found = place(pod(asking("a", mem="3"), asking("b", mem="5")), TWO, GPUSHARE, {})

    assert (["GPU-0"], ["GPU-0"]) == (chosen(found, "a"), chosen(found, "b"))


def test_their_amounts_are_declared_together() -> None:
    """
    What a pod declares of a card is the sum over its containers, init containers left out.
    """
    found = place(
        pod(asking("a", mem="3"), asking("b", mem="5"), inits=(asking("i", mem="9"),)),
        TWO,
        GPUSHARE,
        {},
    )

    assert {"GPU-0": 8 * GIB} == found.declared


def test_containers_that_count_cards_get_different_ones() -> None:
    """
    Whole cards are given to one container each.
    """
    found = place(pod(asking("a", gpu="1"), asking("b", gpu="1")), TWO, NVIDIA, {})

    assert (["GPU-0"], ["GPU-1"]) == (chosen(found, "a"), chosen(found, "b"))


def test_two_cards_are_two_cards() -> None:
    """
    A container that counts two cards gets both.
    """
    assert ["GPU-0", "GPU-1"] == chosen(place(pod(asking(gpu="2")), TWO, NVIDIA, {}))


def test_a_share_declares_its_part_of_the_card() -> None:
    """
    One share of a card that four pods share stands for a quarter of its memory.
    """
    assert {"GPU-0": 3840 * MIB} == place(pod(asking(gpu="1")), TWO, SLICED, {}).declared


def test_hami_declares_its_amount_on_each_card() -> None:
    """
    With HAMi the amount counts on each of the counted cards.
    """
    found = place(pod(asking(gpu="2", gpumem="3000")), TWO, HAMI, {})

    assert {"GPU-0": 3000 * MIB, "GPU-1": 3000 * MIB} == found.declared


def test_instances_are_given_by_profile() -> None:
    """
    A MIG request gets instances of its profile, those that nobody has first.
    """
    cards = (card(0, 40960), instance(0), instance(1))
    taken = {"MIG-0": 4864 * MIB}

    assert ["MIG-1"] == chosen(place(pod(asking(mig="1")), cards, NVIDIA, taken))


def test_a_cut_card_is_not_given_as_a_whole() -> None:
    """
    A card that is cut into instances is no whole card any more.
    """
    assert [] == chosen(place(pod(asking(gpu="1")), (card(0), instance(0)), NVIDIA, {}))


@pytest.mark.parametrize(
    "found",
    [pod(), pod(asking(gpu="1")), pod(asking(mem="0")), pod(asking(mig="1"))],
    ids=["nothing", "another dialect", "zero", "no such profile"],
)
def test_who_asks_for_nothing_here_gets_nothing(found: Pod) -> None:
    """
    A container that names no resource of this node, or nothing of it, gets no card.
    """
    sharing = Sharing(Dialect.GPUSHARE)
    cards = () if "nvidia.com/gpu" in found.mains[0].limits else TWO

    assert Placement() == place(found, cards, sharing, {})


def variables(wish: dict[str, Any], cards: Any, sharing: Sharing) -> dict[str, str]:
    found = pod(wish)
    return device_variables(found.mains[0], place(found, cards, sharing, {}), cards, sharing)


def test_gpushare_tells_index_and_units() -> None:
    """
    Gpushare's device plugin names the card by its index and all amounts in the node's unit.
    """
    assert {
        "NVIDIA_VISIBLE_DEVICES": "0",
        "ALIYUN_COM_GPU_MEM_IDX": "0",
        "ALIYUN_COM_GPU_MEM_DEV": "15",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "3",
        "ALIYUN_COM_GPU_MEM_POD": "3",
    } == variables(asking(mem="3"), TWO, GPUSHARE)


def test_gpushare_names_a_single_card_by_its_uuid() -> None:
    """
    On a node with one card gpushare's device plugin gives the UUID.
    """
    found = variables(asking(mem="3"), (card(0),), GPUSHARE)

    assert "GPU-0" == found["NVIDIA_VISIBLE_DEVICES"]


def test_volcano_tells_index_and_mebibytes() -> None:
    """
    Volcano's device plugin names the card by its index and amounts in MiB, whatever its factor.
    """
    assert {
        "NVIDIA_VISIBLE_DEVICES": "0",
        "VOLCANO_GPU_ALLOCATED": "3000",
        "VOLCANO_GPU_MEMORY_TOTAL": "15360",
    } == variables(asking(volcano="300"), TWO, Sharing(Dialect.VOLCANO, factor=10))


def test_volcano_counts_cards_as_well() -> None:
    """
    Whole cards of Volcano are named by their indices.
    """
    found = variables(asking(number="2"), TWO, VOLCANO)

    assert "0,1" == found["NVIDIA_VISIBLE_DEVICES"]


def test_nvidia_names_cards_by_uuid() -> None:
    """
    NVIDIA's device plugin names cards by their UUIDs and says nothing of memory.
    """
    found = variables(asking(gpu="2"), TWO, NVIDIA)

    assert {"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1"} == found


@pytest.mark.parametrize("sharing", [NVIDIA, GPUSHARE, VOLCANO])
def test_instances_are_named_by_uuid(sharing: Sharing) -> None:
    """
    A MIG instance is named by its UUID under every dialect.
    """
    found = variables(asking(mig="1"), (card(0), instance(0)), sharing)

    assert {"NVIDIA_VISIBLE_DEVICES": "MIG-0"} == found


@pytest.mark.parametrize(
    ("wish", "limit"),
    [(asking(gpu="1", gpumem="3000"), "3000m"), (asking(gpu="1"), "15360m")],
)
def test_hami_tells_its_library_the_limit(wish: dict[str, Any], limit: str) -> None:
    """
    HAMi's device plugin gives its library a limit per card, the whole card where none is asked.
    """
    found = variables(wish, TWO, HAMI)

    assert {"NVIDIA_VISIBLE_DEVICES": "GPU-0", "CUDA_DEVICE_MEMORY_LIMIT_0": limit} == found


def test_who_has_no_card_is_told_nothing() -> None:
    """
    A container without a card gets no variable of any device plugin.
    """
    assert {} == variables(container(), TWO, GPUSHARE)
