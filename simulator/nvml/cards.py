"""What a machine holds: a list of cards, read from text such as `T4,2xA100-40:3g.20gb+1g.5gb`."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.errors import InvalidError, Problem
from gpufence.quantity import MIB
from simulator.nvml import layout
from simulator.nvml.models import ALIASES, MODELS, Model, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

FIELD = "--cards"
FIRST_BUS = 0x04
ROOM_TEMPERATURE = 34

_NAMES = uuid.UUID("6b1f4c0e-63f2-5e0e-9a4d-3d6f5c1b7a20")


@dataclass(frozen=True)
class Blueprint:
    model: Model
    instances: tuple[Profile, ...] | None = None


def read_cards(text: str) -> tuple[Blueprint, ...]:
    """
    Read a comma-separated list of cards.

    `2xT4` is two cards; `A100-40:3g.20gb+1g.5gb` is one in MIG mode with two instances, and
    `A100-40:` one in MIG mode that nobody has cut yet.
    """
    cards = tuple(card for word in text.split(",") for card in _read_word(word.strip()))
    if not 1 <= len(cards) <= layout.MAX_CARDS:
        raise InvalidError(
            Problem(FIELD, text, f"makes {len(cards)} cards", f"name 1 to {layout.MAX_CARDS}")
        )
    return cards


def _read_word(word: str) -> tuple[Blueprint, ...]:
    head, colon, profiles = word.partition(":")
    match = re.fullmatch(r"(?:(\d{1,2})x)?([A-Za-z0-9-]+)", head)
    if match is None:
        raise InvalidError(
            Problem(FIELD, word, "is no card", "write a model such as T4, 2xT4 or A100-40:1g.5gb")
        )
    model = _find(match[2])
    instances = None
    if colon:
        if model.geometry is None:
            raise InvalidError(
                Problem(FIELD, word, "has no MIG mode", "cut an A100 or an H100 instead")
            )
        names = tuple(profiles.split("+")) if profiles else ()
        instances = model.geometry.cut(names, FIELD)
    return (Blueprint(model, instances),) * int(match[1] or 1)


def _find(key: str) -> Model:
    wanted = ALIASES.get(key.upper(), key.upper())
    for model in MODELS:
        if model.key.upper() == wanted:
            return model
    choices = ", ".join(model.key for model in MODELS)
    raise InvalidError(Problem(FIELD, key, "is no known card", f"use one of {choices}"))


def model_named(name: str) -> Model:
    for model in MODELS:
        if model.name == name:
            return model
    raise InvalidError(Problem("name", name, "is no known model", "use a card made from a model"))


def fill(target: layout.StateLayout, cards: Sequence[Blueprint], seed: str) -> None:
    target.card_count = len(cards)
    target.memacct = layout.Memacct.MISC
    for place, blueprint in enumerate(cards):
        target.order[place] = place
        _fill_card(target.cards[place], blueprint, place, seed)


def _fill_card(card: layout.CardLayout, blueprint: Blueprint, place: int, seed: str) -> None:
    model = blueprint.model
    identity = uuid.uuid5(_NAMES, f"{seed}/{place}/{model.key}")
    card.uuid = f"GPU-{identity}".encode()
    card.serial = str(identity.int % 10**13).zfill(13).encode()
    card.name = model.name.encode()
    card.total = model.memory_mib * MIB
    card.reserved = model.reserved_mib * MIB
    card.unified = int(model.unified)
    card.bus = FIRST_BUS + place
    card.pci_device = model.pci_device
    card.capability_major, card.capability_minor = model.capability
    card.temperature = ROOM_TEMPERATURE
    card.fan = layout.NOT_SUPPORTED  # these cards are cooled by the chassis
    card.idle_milliwatts = model.idle_watts * 1000
    card.limit_milliwatts = model.limit_watts * 1000
    card.sm_clock = model.sm_clock
    card.memory_clock = model.memory_clock
    if model.geometry is None:
        card.mig_mode = layout.NOT_SUPPORTED
    elif blueprint.instances is not None:
        card.mig_mode = 1
        per_slice = model.geometry.multiprocessors_per_slice
        fill_instances(card, blueprint.instances, per_slice)


def fill_instances(card: layout.CardLayout, profiles: Sequence[Profile], per_slice: int) -> None:
    """Cut a card anew; an instance's UUID depends on the card, its place and its profile."""
    taken: set[int] = set()
    for place, instance in enumerate(card.instances):
        instance.used = 0
        if place >= len(profiles):
            continue
        profile = profiles[place]
        identity = uuid.uuid5(_NAMES, f"{card.uuid.decode()}/{place}/{profile.name}")
        number = next(one for one in range(profile.first_id, 100) if one not in taken)
        taken.add(number)
        instance.gpu_instance = number
        instance.compute_instance = 0
        instance.slices = profile.slices
        instance.multiprocessors = profile.slices * per_slice
        instance.total = profile.memory_mib * MIB
        instance.reserved = 0
        instance.uuid = f"MIG-{identity}".encode()
        instance.profile = profile.name.encode()
        instance.used = 1
