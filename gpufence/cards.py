"""
The cards of a node, as its own agent writes them into the Node's `gpufence.io/cards` annotation, or
as far as labels tell where none runs.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.errors import InvalidError, Problem
from gpufence.names import CARDS
from gpufence.quantity import GIB, MIB, read_bytes, write_bytes, write_mebibytes
from gpufence.shape import (
    Object,
    as_integer,
    as_object,
    as_text,
    as_texts,
    objects,
    read_versioned,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


LARGEST_MADE: Final = 288 * GIB
"""The most memory of any card that is sold today."""
SMALLEST_MADE: Final = GIB
"""The least, that of the smallest part of a card that clouds rent out."""

_MOST_CARDS: Final = 64
_MOST_MEBIBYTES: Final = 2**22
_LARGEST_SOLD: Final = 1024
_INSTANCE: Final = re.compile(r"[0-9]g\.([0-9]{1,3})gb")
_SIZE: Final = re.compile(r"(?:^|-)([0-9]{1,4})gb?(?:$|-)")

_OF_ONE_SIZE: Final = {
    4: "m4 k520",
    8: "m60 p4",
    12: "k80",
    16: "t4 t4g a2 a16 rtx-a4000",
    24: "p40 a10 a10g a30 l2 l4 rtx-a5000 rtx-3090 rtx-4090",
    32: "v100s rtx-pro-4500 rtx-5090",
    48: "a40 l20 l40 l40s rtx-8000 rtx-a6000",
    96: "rtx-pro-6000",
}
_OF_SEVERAL: Final = {
    "m40": (12, 24),
    "p100": (12, 16),
    "v100": (16, 32),
    "a100": (40, 80),
    "a800": (40, 80),
    "h20": (96, 141),
    "h100": (64, 96),
    "h800": (80, 94),
    "h200": (141, 144),
    "gh200": (96, 144),
    "b100": (180, 192),
    "b200": (180, 192),
    "gb200": (180, 192),
    "b300": (270, 288),
    "gb300": (270, 288),
    "rtx-4000": (8, 20),
    "rtx-5000": (16, 32),
    "rtx-6000": (24, 48),
    "rtx-pro-5000": (48, 72),
}
SOLD: Final[Mapping[str, tuple[int, int]]] = _OF_SEVERAL | {
    name: (size, size) for size, known in _OF_ONE_SIZE.items() for name in known.split()
}
"""Cards by what all their names have in them: the least and the most GB that are sold of each."""

_BORN_WITH: Final = (
    (names.KARPENTER_GPU_MEMORY, names.KARPENTER_GPU_NAME, names.KARPENTER_GPU_COUNT),
    (names.EKS_GPU_MEMORY, names.EKS_GPU_NAME, names.EKS_GPU_COUNT),
)
_NAMED: Final = (
    (names.GKE_ACCELERATOR, names.GKE_ACCELERATOR_COUNT),
    (names.GFD_PRODUCT, names.GFD_COUNT),
    (names.EKS_ACCELERATOR, ""),
)


class _Bounds(NamedTuple):
    """Between how many bytes a driver will show."""

    least: int
    most: int


def cards_by_labels(labels: Mapping[str, str]) -> tuple[Card, ...]:
    """
    Make cards of a node's labels, which describe all of them as equal: as measured where feature
    discovery has been there, else as its cloud or its cards' name has it.
    """
    measured = (*_measured(labels), *_slices(labels))
    return measured or tuple(_born_with(labels))


def _measured(labels: Mapping[str, str]) -> Iterator[Card]:
    memory = label_number(labels, names.GFD_MEMORY)
    count = label_number(labels, names.GFD_COUNT) or 1
    for index in range(min(count, _MOST_CARDS) if memory else 0):
        yield Card(f"{index}", index, _model(labels), (memory or 0) * MIB, _capability(labels))


def _slices(labels: Mapping[str, str]) -> Iterator[Card]:
    """Yield the MIG instances that feature discovery describes."""
    before, after = names.GFD_MIG_MEMORY.split("{profile}")
    for key in sorted(labels):
        if key.startswith(before) and key.endswith(after):
            profile = key.removeprefix(before).removesuffix(after)
            memory = label_number(labels, key)
            if memory:
                mig = Instance("", profile)
                yield Card(key, 0, _model(labels), memory * MIB, _capability(labels), mig)


def _born_with(labels: Mapping[str, str]) -> Iterator[Card]:
    for memory_key, name_key, count_key in _BORN_WITH:
        name = labels.get(name_key, "")
        said = _hull(_stated(label_number(labels, memory_key)), _named(name))
        if said is not None:
            return _alike(said, name, labels, count_key)
    for name_key, count_key in _NAMED:
        name = labels.get(name_key, "")
        said = _named(labels.get(names.GKE_PARTITION) or name)
        if said is not None:
            return _alike(said, name, labels, count_key)
    return iter(())


def _alike(bounds: _Bounds, name: str, labels: Mapping[str, str], count_key: str) -> Iterator[Card]:
    count = label_number(labels, count_key) or 1
    for index in range(min(count, _MOST_CARDS)):
        yield Card(
            f"{index}",
            index,
            name,
            bounds.least,
            _capability(labels),
            most_bytes=bounds.most,
        )


def _stated(mebibytes: int | None) -> _Bounds | None:
    """
    Read what a cloud states: it may count in GB of a thousand, which a driver exceeds, or leave out
    what error correction takes, of which a driver shows less.
    """
    if not mebibytes or mebibytes > _MOST_MEBIBYTES:
        return None
    return _Bounds(mebibytes * MIB * 9 // 10, -(-mebibytes * MIB * GIB // 10**9))


def _named(name: str) -> _Bounds | None:
    """Read a card's name, its size first where it says one; None for one that is not known."""
    words = re.sub(r"[^a-z0-9.]+", "-", name.lower()).removesuffix("-shared")
    instance = _INSTANCE.search(words)
    said = instance or _SIZE.search(words)
    size = int(said[1]) if said else 0
    known = [key for key in SOLD if f"-{key}-" in f"-{words}-"]
    if known and not instance:
        least, most = SOLD[max(known, key=len)]
        return _sold(size, size) if least <= size <= most else _sold(least, most)
    return _sold(size, size) if 1 <= size <= _LARGEST_SOLD else None


def _sold(least: int, most: int) -> _Bounds:
    """Return what a driver shows of cards that are sold with so many GB."""
    return _Bounds(least * GIB * 9 // 10, most * GIB)


def _hull(stated: _Bounds | None, named: _Bounds | None) -> _Bounds | None:
    """
    Return what both say, or all that either says where they contradict each other: of parts of a
    card, which clouds sell too, the name is that of the whole.
    """
    if stated is None or named is None:
        return stated or named
    both = _Bounds(max(stated.least, named.least), min(stated.most, named.most))
    if both.least <= both.most:
        return both
    return _Bounds(min(stated.least, named.least), max(stated.most, named.most))


def shown_memory(card: Card) -> str:
    """Write a card's memory for people, as far as it is known."""
    least = write_mebibytes(card.memory_bytes)
    return f"{least} to {write_mebibytes(card.most_bytes)}" if card.most_bytes else least


def _model(labels: Mapping[str, str]) -> str:
    return labels.get(names.GFD_PRODUCT, "").removesuffix("-SHARED")


def _capability(labels: Mapping[str, str]) -> tuple[int, int] | None:
    major = label_number(labels, names.GFD_COMPUTE_MAJOR)
    minor = label_number(labels, names.GFD_COMPUTE_MINOR, least=0)
    return (major, minor) if major is not None and minor is not None else None


def label_number(labels: Mapping[str, str], key: str, *, least: int = 1) -> int | None:
    """Read a label that is a whole number; None where it is absent, or none."""
    try:
        return whole_number(labels.get(key, ""), key, least=least)
    except InvalidError:
        return None
