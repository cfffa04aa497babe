"""
A simulated machine's cards: what a test, a demonstration or a person changes while clients run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gpufence.errors import InvalidError, Problem, shown
from simulator.nvml import layout
from simulator.nvml.card import Card
from simulator.nvml.errors import StateFileError
from simulator.nvml.faults import Faults
from simulator.nvml.file import StateFile
from simulator.nvml.functions import FUNCTIONS, span
from simulator.nvml.processes import Place, Processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from simulator.nvml.layout import Generation

DEFAULT_SEED = "gpufence"
XID_EVENT = 0x8


class State:
    """
    One state file, open for reading and changing.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self.faults = Faults(file)
        self.processes = Processes(file)

    @classmethod
    def create(cls, path: Path, cards: str, *, seed: str = DEFAULT_SEED) -> Self:
        """
        Make a machine with these cards (`cards.read_cards` says how they are written).

        Machines of different seeds have different UUIDs, as two nodes of a cluster must. Clients
        of a state that stood at the path go over to this one with their next call.
        """
        from simulator.nvml.cards import fill, read_cards  # noqa: PLC0415 - workloads start without

        blueprints = read_cards(cards)
        return cls(StateFile.create(path, lambda made: fill(made, blueprints, seed)))

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(StateFile.open(path))

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def cards(self) -> tuple[Card, ...]:
        """
        The cards by their place in the state, which never changes.
        """
        return tuple(Card(self._file, place) for place in range(self._file.layout.card_count))

    @property
    def indices(self) -> tuple[int, ...]:
        """
        The places in the order of their NVML indices.
        """
        state = self._file.layout
        return tuple(int(state.order[index]) for index in range(state.card_count))

    def reorder(self, places: Sequence[int]) -> None:
        """
        Change which index each card has, as a reboot may.
        """
        if sorted(places) != list(range(self._file.layout.card_count)):
            raise InvalidError(
                Problem("order", str(list(places)), "leaves cards out", "name each place once")
            )
        for index, place in enumerate(places):
            self._file.layout.order[index] = place

    def find(self, name: str) -> Place:
        """
        Find a card or a MIG instance by index (`0`), index and instance (`0:1`) or UUID.
        """
        for found, place in self._names():
            if found == name:
                return place
        known = ", ".join(found for found, _ in self._names())
        raise InvalidError(Problem("card", name, "is not there", f"use one of {known}"))

    def _names(self) -> Iterator[tuple[str, Place]]:
        for index, place in enumerate(self.indices):
            card = self.cards[place]
            yield str(index), Place(place)
            yield card.uuid, Place(place)
            for instance in card.instances:
                yield f"{index}:{instance.place.instance}", instance.place
                yield instance.uuid, instance.place

    def post_xid(self, card: int, xid: int, *, instance: int = layout.NO_INSTANCE) -> None:
        """
        Report a critical error of a card to everybody who waits for one.
        """
        state = self._file.layout
        with self._file.locks.allocation():
            event = state.events[state.next_event % layout.MAX_EVENTS]
            event.sequence = state.next_event
            event.type, event.data, event.card = XID_EVENT, xid, card
            event.gpu_instance = event.compute_instance = layout.ID_NOT_AVAILABLE
            if instance != layout.NO_INSTANCE:
                cut = state.cards[card].instances[instance]
                event.gpu_instance = cut.gpu_instance
                event.compute_instance = cut.compute_instance
            state.next_event += 1

    def upgrade_driver(self, version: str) -> None:
        """
        Replace the driver: clients that loaded the library before see a version mismatch.
        """
        if len(version.encode()) >= layout.SHORT_TEXT_SIZE:
            raise StateFileError(
                f"driver version: {shown(version)} is too long; "
                f"write at most {layout.SHORT_TEXT_SIZE - 1} bytes"
            )
        self._file.layout.driver = version.encode()
        self._file.layout.driver_epoch += 1

    def behave_like(self, generation: Generation) -> None:
        """
        Show PIDs to other namespaces as drivers of this generation do.
        """
        self._file.layout.generation = generation

    def move_home(self, name_space: int) -> None:
        """
        Declare another PID namespace the initial one, so that callers here count as nested.
        """
        self._file.layout.home_namespace = name_space

    def include_reserved(self, *, included: bool) -> None:
        """
        Choose whether version 2 of the memory info counts reserved memory as used.
        """
        self._file.layout.used_includes_reserved = int(included)

    def calls(self, function: str) -> int:
        """
        Count the calls of a function, in all its versions, since the state was made.
        """
        first, last = span(function)
        return sum(int(self._file.layout.calls[one]) for one in range(first, last + 1))

    def all_calls(self) -> dict[str, int]:
        """
        Count the calls per function; those never called are left out.
        """
        counts = {name: int(self._file.layout.calls[one]) for one, name in enumerate(FUNCTIONS)}
        return {name: count for name, count in counts.items() if count}
