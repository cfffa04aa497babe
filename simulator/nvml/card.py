"""One card of an open state, and the MIG instances it is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.errors import InvalidError, Problem
from simulator.nvml.processes import CardPlace, ProcessLedger, Room, Use

if TYPE_CHECKING:
    from simulator.nvml import layout
    from simulator.nvml.file import StateFile


@dataclass(frozen=True, slots=True)
class SimulatedInstance:
    place: CardPlace
    uuid: str
    profile: str
    memory: int
    gpu_instance: int


class SimulatedCard:
    """A card as it is now; what is set here shows in the next call of every client."""

    def __init__(self, file: StateFile, place: int) -> None:
        self._file = file
        self._processes = ProcessLedger(file)
        self.place = place

    @property
    def _layout(self) -> layout.CardLayout:
        return self._file.layout.cards[self.place]

    @property
    def uuid(self) -> str:
        return self._layout.uuid.decode()

    @property
    def name(self) -> str:
        return self._layout.name.decode()

    @property
    def memory(self) -> int:
        return self._layout.total

    @property
    def reserved(self) -> int:
        return self._layout.reserved

    @property
    def capability(self) -> tuple[int, int]:
        return self._layout.capability_major, self._layout.capability_minor

    @property
    def uses(self) -> tuple[Use, ...]:
        return tuple(self._processes.living(self.place))

    @property
    def room(self) -> Room:
        return self._processes.room(CardPlace(self.place))

    @property
    def extra(self) -> int:
        return self._layout.extra

    @extra.setter
    def extra(self, amount: int) -> None:
        self._layout.extra = amount

    @property
    def accounting(self) -> bool:
        """Tell whether processes that begin are accounted, as root may have wanted."""
        return bool(self._layout.accounting)

    @accounting.setter
    def accounting(self, on: bool) -> None:
        self._layout.accounting = int(on)

    @property
    def mig(self) -> bool:
        return self._layout.mig_mode == 1

    @property
    def instances(self) -> tuple[SimulatedInstance, ...]:
        """The instances the card is cut into; none outside MIG mode."""
        return tuple(
            SimulatedInstance(
                CardPlace(self.place, number),
                cut.uuid.decode(),
                cut.profile.decode(),
                cut.total,
                cut.gpu_instance,
            )
            for number, cut in enumerate(self._layout.instances)
            if cut.used and self.mig
        )

    def cut(self, *profiles: str, reuse_handles: bool = False) -> None:
        """
        Turn MIG mode on and cut the card anew, which needs it empty, as on hardware.

        Handles to instances become invalid or, as NVML also allows, mean the new instances.
        """
        from simulator.nvml.cards import fill_instances, model_named  # noqa: PLC0415 - as in state

        geometry = model_named(self.name).geometry
        if geometry is None or self.uses:
            reason = "has no MIG mode" if geometry is None else "is in use"
            raise InvalidError(Problem("card", self.name, reason, "use an empty A100 or H100"))
        chosen = geometry.cut(profiles, "profiles")
        fill_instances(self._layout, chosen, geometry.multiprocessors_per_slice)
        self._set_mode(on=True, reuse_handles=reuse_handles)

    def leave_mig(self) -> None:
        for cut in self._layout.instances:
            cut.used = 0
        self._set_mode(on=False, reuse_handles=False)

    def _set_mode(self, *, on: bool, reuse_handles: bool) -> None:
        self._layout.mig_mode = int(on)
        self._layout.accounting = 0
        self._layout.mig_reuse = int(reuse_handles)
        self._layout.mig_generation += 1
