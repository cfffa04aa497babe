"""
The machine that a node stands for: its cards, what it offers of them, and who gets which.

Cards are shared as Aliyun's gpushare shares them. Its device plugin takes the card that its
scheduler wrote down; where nothing was written, as under the plain kube-scheduler, a card is chosen
here: the one with the most undeclared memory.

Or they are handed out whole, or to so many pods each, as NVIDIA's device plugin does, or by
resource claims: then the node offers no resource and has no label of its cards, and
`simulator.node.claims` says who gets which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.cards import Card, Instance
from gpufence.quantity import MIB, UNIT_BYTES, read_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.node.pod import NodeContainer, NodePod
    from simulator.nvml.state import State

HOSTNAME = "kubernetes.io/hostname"
GPUSHARE_LABEL = "gpushare"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
GPUSHARE = "ALIYUN_COM_GPU_MEM"
WHOLE = "card"
CLAIMS = "claims"


@dataclass(frozen=True, slots=True)
class GpuMachine:
    """
    A node's name, address and cards; `unit` is that of `aliyun.com/gpu-mem`, GiB or MiB, or `card`
    where they are handed out without an amount, whole or to so many `clients` each, or `claims`.
    """

    name: str
    address: str
    cards: tuple[Card, ...]
    unit: str = "GiB"
    clients: int = 1

    @property
    def whole_cards(self) -> tuple[Card, ...]:
        cut = {card.mig.parent for card in self.cards if card.mig}
        return tuple(card for card in self.cards if card.mig is None and card.uuid not in cut)

    @property
    def units_of_a_card(self) -> int:
        """
        The size of every card in units: the first one's, rounded down, as the device plugin has it.
        """
        return self.whole_cards[0].memory_bytes // UNIT_BYTES[self.unit]


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod's cards, none where it asked for none, and how much of each was declared."""

    cards: tuple[Card, ...] = ()
    declared: int = 0


def cards_of(state: State) -> tuple[Card, ...]:
    cards: list[Card] = []
    for index, place in enumerate(state.indices):
        card = state.cards[place]
        cards.append(Card(card.uuid, index, card.name, card.memory, card.capability))
        cards += [
            Card(
                uuid=one.uuid,
                index=index,
                model=card.name,
                memory_bytes=one.memory,
                compute_capability=card.capability,
                mig=Instance(card.uuid, one.profile),
            )
            for one in card.instances
        ]
    return tuple(cards)


def gpu_capacity(machine: GpuMachine) -> dict[str, str]:
    count = len(machine.whole_cards)
    if not count or machine.unit == CLAIMS:
        return {}
    if machine.unit == WHOLE:
        return {names.NVIDIA_GPU: str(count * machine.clients)}
    return {
        names.GPUSHARE_MEMORY: str(machine.units_of_a_card * count),
        names.GPUSHARE_COUNT: str(count),
    }


def labels(machine: GpuMachine) -> dict[str, str]:
    """
    Return the node's labels: Kubernetes' own, gpushare's, and those of GPU feature discovery,
    which describes all cards by the first.
    """
    own = {
        HOSTNAME: machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    if machine.unit == CLAIMS:
        return {**own, names.GPU_PRESENT: "true"}
    if machine.unit != WHOLE:
        own[GPUSHARE_LABEL] = "true"
    physical = [card for card in machine.cards if card.mig is None]
    shared = machine.clients > 1
    major, minor = physical[0].compute_capability or (0, 0)
    return {
        **own,
        names.GPU_PRESENT: "true",
        names.GFD_COUNT: str(len(physical)),
        names.GFD_PRODUCT: f"{physical[0].model.replace(' ', '-')}{'-SHARED' * shared}",
        names.GFD_MEMORY: str(physical[0].memory_bytes // MIB),
        names.GFD_REPLICAS: str(machine.clients),
        names.GFD_SHARING: "time-slicing" if shared else "none",
        names.GFD_COMPUTE_MAJOR: str(major),
        names.GFD_COMPUTE_MINOR: str(minor),
    }


def place(pod: NodePod, machine: GpuMachine, taken: Mapping[str, int]) -> Placement:
    """Choose the pod's cards; `taken` is what other pods declared of each card, by UUID."""
    units = sum(_units(container, machine) for container in pod.containers)
    cards = machine.whole_cards
    if not units or not cards:
        return Placement()
    index = pod.annotations.get(names.GPUSHARE_CARD_INDEX)
    assigned = [card for card in cards if str(card.index) == index]
    free = sorted(cards, key=lambda card: taken.get(card.uuid, 0) - card.memory_bytes)
    if machine.unit == WHOLE:
        return Placement(tuple(free[:units]), free[0].memory_bytes // machine.clients)
    return Placement(tuple((assigned or free)[:1]), units * UNIT_BYTES[machine.unit])


def device_variables(
    container: NodeContainer, cards: tuple[Card, ...], machine: GpuMachine
) -> dict[str, str]:
    """Return what the device plugin puts into the container; nothing where it asked for no card."""
    if machine.unit == CLAIMS and cards:
        return {VISIBLE: ",".join(card.uuid for card in cards)}
    if not cards or not _units(container, machine):
        return {}
    if machine.unit == WHOLE:
        return {VISIBLE: ",".join(card.uuid for card in cards)}
    card = cards[0]
    units = container.limits[names.GPUSHARE_MEMORY]
    alone = len(machine.whole_cards) == 1
    return {
        VISIBLE: card.uuid if alone else str(card.index),
        f"{GPUSHARE}_IDX": str(card.index),
        f"{GPUSHARE}_DEV": str(machine.units_of_a_card),
        f"{GPUSHARE}_CONTAINER": units,
        f"{GPUSHARE}_POD": units,  # the plugin's name lies: it sees one container at a time
    }


def _units(container: NodeContainer, machine: GpuMachine) -> int:
    resource = names.NVIDIA_GPU if machine.unit == WHOLE else names.GPUSHARE_MEMORY
    return read_count(container.limits.get(resource, "0"), resource)
