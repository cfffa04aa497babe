"""
A simulated machine's cards: what a test, a demonstration or a person changes while clients run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from gpufence.errors import InvalidError, Problem, shown
from simulator.nvml import layout
from simulator.nvml.card import SimulatedCard
from simulator.nvml.errors import StateFileError
from simulator.nvml.faults import Faults, span
from simulator.nvml.file import StateFile
from simulator.nvml.processes import CardPlace, ProcessLedger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

DEFAULT_SEED = "gpufence"


class State:
    """One state file, open for reading and changing."""

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self.faults = Faults(file)
        self.processes = ProcessLedger(file)
        self.groups = self.processes.groups

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
    def cards(self) -> tuple[SimulatedCard, ...]:
        return tuple(
            SimulatedCard(self._file, place) for place in range(self._file.layout.card_count)
        )

    @property
    def indices(self) -> tuple[int, ...]:
        state = self._file.layout
        return tuple(int(state.order[index]) for index in range(state.card_count))

    def reorder(self, places: Sequence[int]) -> None:
        """Change which index each card has, as a reboot may."""
        if sorted(places) != list(range(self._file.layout.card_count)):
            raise InvalidError(
                Problem("order", str(list(places)), "leaves cards out", "name each place once")
            )
        for index, place in enumerate(places):
            self._file.layout.order[index] = place

    def find(self, name: str) -> CardPlace:
        """Find a card or a MIG instance by index (`0`), index and instance (`0:1`) or UUID."""
        for label, place in self._names():
            if label == name:
                return place
        choices = ", ".join(label for label, _ in self._names())
        raise InvalidError(Problem("card", name, "is not there", f"use one of {choices}"))

    def _names(self) -> Iterator[tuple[str, CardPlace]]:
        for index, place in enumerate(self.indices):
            card = self.cards[place]
            yield str(index), CardPlace(place)
            yield card.uuid, CardPlace(place)
            for instance in card.instances:
                yield f"{index}:{instance.place.instance}", instance.place
                yield instance.uuid, instance.place

    def upgrade_driver(self, version: str) -> None:
        """Replace the driver: clients that loaded the library before see a version mismatch."""
        if len(version.encode()) >= layout.SHORT_TEXT_SIZE:
            raise StateFileError(
                f"driver version: {shown(version)} is too long; "
                f"write at most {layout.SHORT_TEXT_SIZE - 1} bytes"
            )
        self._file.layout.driver = version.encode()
        self._file.layout.driver_epoch += 1

    def calls(self, function: str) -> int:
        first, last = span(function)
        return sum(int(self._file.layout.calls[one]) for one in range(first, last + 1))
