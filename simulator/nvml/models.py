"""
The graphics cards that can be simulated, with the figures their drivers report.

`reserved` is what the driver keeps for itself: NVML's total minus the total that CUDA programs see.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.nvml import mig

TESLA, NVIDIA = 2, 14
VOLTA, TURING, AMPERE, ADA, HOPPER = 5, 6, 7, 8, 9


@dataclass(frozen=True)
class Model:
    """
    One product. Memory in MiB, power in watts, clocks in MHz.
    """

    key: str
    name: str
    memory_mib: int
    reserved_mib: int
    capability: tuple[int, int]
    architecture: int
    brand: int
    pci_device: int
    idle_watts: int
    limit_watts: int
    sm_clock: int
    memory_clock: int
    ecc: bool = True
    geometry: mig.Geometry | None = None


MODELS = (
    Model(
        key="T4",
        name="Tesla T4",
        memory_mib=15360,
        reserved_mib=430,
        capability=(7, 5),
        architecture=TURING,
        brand=TESLA,
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
        architecture=VOLTA,
        brand=TESLA,
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
        architecture=VOLTA,
        brand=TESLA,
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
        architecture=AMPERE,
        brand=NVIDIA,
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
        architecture=ADA,
        brand=NVIDIA,
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
        architecture=AMPERE,
        brand=NVIDIA,
        pci_device=0x20B010DE,
        idle_watts=45,
        limit_watts=400,
        sm_clock=1410,
        memory_clock=1215,
        geometry=mig.A100_40,
    ),
    Model(
        key="A100-80",
        name="NVIDIA A100-SXM4-80GB",
        memory_mib=81920,
        reserved_mib=870,
        capability=(8, 0),
        architecture=AMPERE,
        brand=NVIDIA,
        pci_device=0x20B210DE,
        idle_watts=55,
        limit_watts=400,
        sm_clock=1410,
        memory_clock=1593,
        geometry=mig.A100_80,
    ),
    Model(
        key="H100",
        name="NVIDIA H100 80GB HBM3",
        memory_mib=81559,
        reserved_mib=561,
        capability=(9, 0),
        architecture=HOPPER,
        brand=NVIDIA,
        pci_device=0x233010DE,
        idle_watts=70,
        limit_watts=700,
        sm_clock=1980,
        memory_clock=2619,
        geometry=mig.H100_80,
    ),
)
ALIASES = {"V100": "V100-16"}
