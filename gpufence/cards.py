"""
The cards of a node, as its own agent writes them into the Node's `gpufence.io/cards` annotation.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from gpufence.errors import InvalidError, Problem
from gpufence.names import CARDS
from gpufence.quantity import read_bytes, write_bytes
from gpufence.shape import (
    Object,
    as_integer,
    as_object,
    as_text,
    as_texts,
    objects,
    read_versioned,
)

VERSION = 1


class Instance(NamedTuple):
    """The MIG side of a card: the physical card it is cut from, and its profile."""

    parent: str
    profile: str


class Card(NamedTuple):
    """
    One card, or one MIG instance, which for every purpose of ours is a card.

    Where only labels tell its size, it has `memory_bytes` at least and `most_bytes` at most.
    """

    uuid: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs of a card
    model: str
    memory_bytes: int
    compute_capability: tuple[int, int] | None = None
    mig: Instance | None = None
    most_bytes: int | None = None

    @property
    def full_model(self) -> str:
        """Name the model as drivers do, a MIG instance with its profile."""
        return self.model if self.mig is None else f"{self.model} MIG {self.mig.profile}"


class NodeCards(NamedTuple):
    """
    What an agent states about its node.

    `units` is the unit of gpushare's resource by resource name, `factor` Volcano's; both absent
    where the node's own figures left a doubt.
    """

    driver: str
    observed: str
    cards: tuple[Card, ...]
    units: tuple[tuple[str, str], ...] = ()
    factor: int | None = None


def write_cards(stated: NodeCards) -> str:
    """
    Write the annotation: one line of JSON, keys in a fixed order so that equal nodes write alike.
    """
    return json.dumps(
        {
            "v": VERSION,
            "driver": stated.driver,
            "observed": stated.observed,
            "units": dict(stated.units),
            "factor": stated.factor,
            "cards": [_card_object(card) for card in stated.cards],
        },
        separators=(",", ":"),
    )


def read_cards(text: str) -> NodeCards:
    """
    Read the annotation.

    Raises:
        UnknownVersionError: a newer agent wrote it.
        InvalidError: it is not what an agent writes.
    """
    written = read_versioned(text, CARDS, VERSION)
    factor = written.get("factor")
    units = as_texts(written.get("units"), f"{CARDS}.units")
    return NodeCards(
        driver=as_text(written.get("driver"), f"{CARDS}.driver"),
        observed=as_text(written.get("observed"), f"{CARDS}.observed"),
        cards=tuple(
            _card(item, f"{CARDS}.cards[{position}]")
            for position, item in enumerate(objects(written.get("cards"), f"{CARDS}.cards"))
        ),
        units=tuple(sorted(units.items())),
        factor=None if factor is None else as_integer(factor, f"{CARDS}.factor", least=1),
    )


def _card_object(card: Card) -> dict[str, object]:
    written: dict[str, object] = {
        "uuid": card.uuid,
        "index": card.index,
        "model": card.model,
        "memory": write_bytes(card.memory_bytes, largest="Mi"),
    }
    if card.compute_capability is not None:
        written["cc"] = "{}.{}".format(*card.compute_capability)
    if card.mig is not None:
        written["mig"] = {"parent": card.mig.parent, "profile": card.mig.profile}
    return written


def _card(written: Object, field: str) -> Card:
    mig = as_object(written.get("mig"), f"{field}.mig")
    memory = read_bytes(written.get("memory"), f"{field}.memory")
    if not memory:
        raise InvalidError(
            Problem(f"{field}.memory", "0", "is no card's memory", "leave the card out")
        )
    return Card(
        uuid=as_text(written.get("uuid"), f"{field}.uuid"),
        index=as_integer(written.get("index"), f"{field}.index"),
        model=as_text(written.get("model"), f"{field}.model"),
        memory_bytes=memory,
        compute_capability=read_capability(as_text(written.get("cc"), f"{field}.cc")),
        mig=Instance(
            as_text(mig.get("parent"), f"{field}.mig.parent"),
            as_text(mig.get("profile"), f"{field}.mig.profile"),
        )
        if mig
        else None,
    )


def read_capability(text: str) -> tuple[int, int] | None:
    """
    Read a compute capability such as 7.5; None for anything else, since a guess would cost memory.
    """
    major, dot, minor = text.partition(".")
    if dot and major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit():
        return int(major[:4]), int(minor[:4])
    return None
