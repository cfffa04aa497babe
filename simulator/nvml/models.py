"""
The graphics cards that can be simulated, with the figures their drivers report, and how an A100 or
H100 is cut into MIG instances.

`reserved` is what the driver keeps for itself: NVML's total minus the total that CUDA programs see.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufence.errors import InvalidError, Problem
from simulator.nvml.layout import MAX_INSTANCES

SLICES = 7


@dataclass(frozen=True)
class Profile:
    """One way to cut: compute slices, memory, and the first GPU instance id the driver gives it."""

    name: str
    slices: int
    memory_mib: int
    first_id: int


@dataclass(frozen=True)
class Geometry:
    multiprocessors_per_slice: int
    profiles: tuple[Profile, ...]

    def cut(self, names: tuple[str, ...], field: str) -> tuple[Profile, ...]:
        chosen = tuple(self._profile(name, field) for name in names)
        if len(chosen) > MAX_INSTANCES or sum(one.slices for one in chosen) > SLICES:
            raise InvalidError(
                Problem(
                    field,
                    "+".join(names),
                    f"takes more than the {SLICES} slices of a card",
                    "leave some instances out",
                )
            )
        return chosen

    def _profile(self, name: str, field: str) -> Profile:
        for profile in self.profiles:
            if profile.name == name:
                return profile
        choices = ", ".join(profile.name for profile in self.profiles)
        raise InvalidError(
            Problem(field, name, "is no MIG profile of this card", f"use one of {choices}")
        )


A100_40 = Geometry(
    multiprocessors_per_slice=14,
    profiles=(
        Profile("1g.5gb", 1, 4864, 7),
        Profile("2g.10gb", 2, 9984, 3),
        Profile("3g.20gb", 3, 20096, 1),
        Profile("4g.20gb", 4, 20096, 1),
        Profile("7g.40gb", 7, 40448, 0),
    ),
)
A100_80 = Geometry(
    multiprocessors_per_slice=14,
    profiles=(
        Profile("1g.10gb", 1, 9728, 7),
        Profile("2g.20gb", 2, 19968, 3),
        Profile("3g.40gb", 3, 40448, 1),
        Profile("4g.40gb", 4, 40448, 1),
        Profile("7g.80gb", 7, 80896, 0),
    ),
)
H100_80 = Geometry(
    multiprocessors_per_slice=16,
    profiles=(
        Profile("1g.10gb", 1, 9984, 7),
        Profile("2g.20gb", 2, 20096, 3),
        Profile("3g.40gb", 3, 40448, 1),
        Profile("4g.40gb", 4, 40448, 1),
        Profile("7g.80gb", 7, 80640, 0),
    ),
)


@dataclass(frozen=True)
class Model:
    """
    One product. Memory in MiB, power in watts, clocks in MHz. What is `unified` has no memory of
    its own but the machine's, of which NVML says nothing.
    """

    key: str
    name: str
    memory_mib: int
    reserved_mib: int
    capability: tuple[int, int]
    pci_device: int
    idle_watts: int
    limit_watts: int
    sm_clock: int
    memory_clock: int
    geometry: Geometry | None = None
    unified: bool = False


MODELS = (
    Model(
        key="T4",
        name="Tesla T4",
        memory_mib=15360,
        reserved_mib=430,
        capability=(7, 5),
        pci_device=0x1EB810DE,
        idle_watts=9,
        limit_watts=70,
        sm_clock=1590,
        memory_clock=5001,
    ),
    Model(
        key="V100-16",
        name="Tesla V100-SXM2-16GB",
        memory_mib=16384,
        reserved_mib=236,
        capability=(7, 0),
        pci_device=0x1DB110DE,
        idle_watts=24,
        limit_watts=300,
        sm_clock=1530,
        memory_clock=877,
    ),
    Model(
        key="V100-32",
        name="Tesla V100-SXM2-32GB",
        memory_mib=32768,
        reserved_mib=266,
        capability=(7, 0),
        pci_device=0x1DB510DE,
        idle_watts=24,
        limit_watts=300,
        sm_clock=1530,
        memory_clock=877,
    ),
    Model(
        key="A10G",
        name="NVIDIA A10G",
        memory_mib=23028,
        reserved_mib=439,
        capability=(8, 6),
        pci_device=0x223710DE,
        idle_watts=16,
        limit_watts=300,
        sm_clock=1710,
        memory_clock=6251,
    ),
    Model(
        key="L4",
        name="NVIDIA L4",
        memory_mib=23034,
        reserved_mib=557,
        capability=(8, 9),
        pci_device=0x27B810DE,
        idle_watts=12,
        limit_watts=72,
        sm_clock=2040,
        memory_clock=6251,
    ),
    Model(
        key="A100-40",
        name="NVIDIA A100-SXM4-40GB",
        memory_mib=40960,
        reserved_mib=625,
        capability=(8, 0),
        pci_device=0x20B010DE,
        idle_watts=45,
        limit_watts=400,
        sm_clock=1410,
        memory_clock=1215,
        geometry=A100_40,
    ),
    Model(
        key="A100-80",
        name="NVIDIA A100-SXM4-80GB",
        memory_mib=81920,
        reserved_mib=870,
        capability=(8, 0),
        pci_device=0x20B210DE,
        idle_watts=55,
        limit_watts=400,
        sm_clock=1410,
        memory_clock=1593,
        geometry=A100_80,
    ),
    Model(
        key="H100",
        name="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        reserved_mib=561,
        capability=(9, 0),
        pci_device=0x233010DE,
        idle_watts=70,
        limit_watts=700,
        sm_clock=1980,
        memory_clock=2619,
        geometry=H100_80,
    ),
    Model(
        key="GB10",
        name="NVIDIA GB10",
        memory_mib=122570,
        reserved_mib=0,
        capability=(12, 1),
        pci_device=0x2E1210DE,
        idle_watts=4,
        limit_watts=140,
        sm_clock=2418,
        memory_clock=0,
        unified=True,
    ),
)
ALIASES = {"V100": "V100-16"}
