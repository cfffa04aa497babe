"""
PURE. Which cards a pod gets, and the variables by which its containers learn of them.

Real device plugins choose among what their scheduler wrote down; where nothing was written, as
under the plain kube-scheduler, a card is chosen here: the one with the most undeclared memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.quantity import MIB
from simulator.node.pod import Kind
from simulator.node.sharing import (
    Dialect,
    Sharing,
    amount_bytes,
    card_count,
    instance_counts,
    profiles,
    whole_cards,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.cards import Card
    from simulator.node.pod import Container, Pod

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
GPUSHARE = "ALIYUN_COM_GPU_MEM"
VOLCANO = "VOLCANO_GPU"
HAMI_LIMIT = "CUDA_DEVICE_MEMORY_LIMIT_"
_BOOKS = (names.GPUSHARE_CARD_INDEX, names.VOLCANO_CARD_INDEX)


@dataclass(frozen=True, slots=True)
class Placement:
    """
    The cards of each container that asked for one, and how much of each card was declared.
    """

    cards: Mapping[str, tuple[Card, ...]] = field(default_factory=dict)
    declared: Mapping[str, int] = field(default_factory=dict)


def place(pod: Pod, cards: Sequence[Card], sharing: Sharing, taken: Mapping[str, int]) -> Placement:
    """
    Choose the pod's cards; `taken` is what other pods declared of each card, by UUID.

    A scheduler's own choice, written as an annotation, counts where the card is there. Containers
    that share by amount share one card; those that count cards get different ones.
    """
    chosen: dict[str, tuple[Card, ...]] = {}
    declared: dict[str, int] = {}
    shared = _most_free(_assigned(pod, cards), taken, declared, 1)
    for container in pod.containers:
        amount = amount_bytes(sharing, container.limits)
        count = card_count(sharing, container.limits)
        if amount and not count:
            found = shared
        else:
            found = _most_free(whole_cards(cards), taken, declared, count)
        for profile, wanted in instance_counts(container.limits).items():
            found += _most_free(profiles(cards).get(profile, ()), taken, declared, wanted)
        if not found:
            continue
        chosen[container.name] = found
        if container.kind is not Kind.INIT:
            for card in found:
                part = amount or card.memory_bytes // sharing.shares
                declared[card.uuid] = declared.get(card.uuid, 0) + part
    return Placement(chosen, declared)


def device_variables(
    container: Container, placement: Placement, cards: Sequence[Card], sharing: Sharing
) -> dict[str, str]:
    """
    Return what the device plugin puts into the container; nothing where it asked for no card.

    GKE hides the other cards' device files instead; here the variable stands for that.
    """
    found = placement.cards.get(container.name, ())
    if not found:
        return {}
    first = whole_cards(cards)[0] if whole_cards(cards) else found[0]
    if sharing.dialect is Dialect.GPUSHARE and found[0].mig is None:
        units = container.limits.get(names.GPUSHARE_MEMORY, "0")
        alone = len(whole_cards(cards)) == 1
        return {
            VISIBLE: found[0].uuid if alone else str(found[0].index),
            f"{GPUSHARE}_IDX": str(found[0].index),
            f"{GPUSHARE}_DEV": str(sharing.units_of(first)),
            f"{GPUSHARE}_CONTAINER": units,
            f"{GPUSHARE}_POD": units,  # the plugin's name lies: it sees one container at a time
        }
    if sharing.dialect is Dialect.VOLCANO and found[0].mig is None:
        amount = amount_bytes(sharing, container.limits)
        return {
            VISIBLE: ",".join(str(card.index) for card in found),
            f"{VOLCANO}_ALLOCATED": str(amount // MIB),
            f"{VOLCANO}_MEMORY_TOTAL": str(first.memory_bytes // MIB),
        }
    variables = {VISIBLE: ",".join(card.uuid for card in found)}
    if sharing.dialect is Dialect.HAMI:
        amount = amount_bytes(sharing, container.limits)
        for position, card in enumerate(found):
            part = amount or card.memory_bytes
            variables[f"{HAMI_LIMIT}{position}"] = f"{part // MIB}m"
    return variables


def _assigned(pod: Pod, cards: Sequence[Card]) -> tuple[Card, ...]:
    whole = whole_cards(cards)
    for key in _BOOKS:
        index = pod.annotations.get(key, "")
        for card in whole:
            if index == str(card.index):
                return (card,)
    return whole


def _most_free(
    cards: Sequence[Card], taken: Mapping[str, int], declared: Mapping[str, int], count: int
) -> tuple[Card, ...]:
    def used(card: Card) -> int:
        return taken.get(card.uuid, 0) + declared.get(card.uuid, 0)

    return tuple(sorted(cards, key=lambda card: used(card) - card.memory_bytes)[:count])
