"""PURE. What holds a pod to its limit on a card: one word for each way, the strongest first."""

from enum import StrEnum
from typing import Final

FIRST_DRIVER: Final = 615
"""The first that holds a container to a limit; no container with one starts on an older one."""


def is_too_old(driver: str) -> bool:
    """Return whether a driver of this version is known to be older than that."""
    major = driver.partition(".")[0]
    return major.isascii() and major.isdigit() and int(major[:6]) < FIRST_DRIVER


class Fence(StrEnum):
    """
    One word for snapshot, metrics, tables and pages; of several that hold, the first counts.

    All but `AGENT` refuse the allocation that would pass the limit: hardware, driver, MPS's server
    and library whatever the program is, a framework as far as it keeps to what it was configured
    with. `AGENT` alone reports and evicts.
    """

    MIG = "mig"  # the card is a MIG instance: hardware
    DRIVER = "driver"  # the driver holds the container's cgroup to its limit, read back from it
    MPS = "mps"  # an MPS server holds each client to a limit
    LIBRARY = "library"  # a library in the container counts: HAMi, Volcano vGPU, cGPU
    FRAMEWORK = "framework"  # the frameworks are configured to hold no more
    AGENT = "agent"  # nothing but the agent, which evicts
