"""
PURE. What NVML's return codes mean to us: who is out of reach, and what a person can do about it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from agent.model.sample import Trouble, TroubleCode
from gpufence.errors import shown

if TYPE_CHECKING:
    from agent.nvml.protocol import NvmlFailure


class Code(IntEnum):
    """The codes of nvml.h that are told apart here."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    ARGUMENT_VERSION_MISMATCH = 25
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


_ENDING: Final = frozenset(
    {
        Code.UNINITIALIZED,
        Code.DRIVER_NOT_LOADED,
        Code.LIBRARY_NOT_FOUND,
        Code.LIB_RM_VERSION_MISMATCH,
    }
)
_OF_THE_CONTAINER: Final = frozenset(
    {Code.OPERATING_SYSTEM, Code.LIB_RM_VERSION_MISMATCH, Code.UNKNOWN}
)
"""
What a new container may have that this one has lost: devices that systemd took away, or the library
of a driver that was replaced.
"""
_LASTING: Final = frozenset({Code.NOT_SUPPORTED, Code.NO_PERMISSION, Code.FUNCTION_NOT_FOUND})

_MEANINGS: Final = {
    Code.UNINITIALIZED: (
        "NVML was shut down",
        "nothing to do, it is opened again",
    ),
    Code.INVALID_ARGUMENT: (
        "the driver does not know this card any more",
        "look in the kernel's log for Xid messages if it stays away",
    ),
    Code.NOT_SUPPORTED: (
        "the driver cannot tell",
        "use a card or a driver that reports memory per process",
    ),
    Code.NO_PERMISSION: (
        "the driver refuses to tell",
        "give the agent all devices: runtime class nvidia and NVIDIA_VISIBLE_DEVICES=all",
    ),
    Code.INSUFFICIENT_SIZE: (
        "its processes multiply faster than the driver can list them",
        "look for a program that forks without end",
    ),
    Code.DRIVER_NOT_LOADED: (
        "the NVIDIA driver is not loaded",
        "load it; the agent goes on by itself",
    ),
    Code.TIMEOUT: (
        "the driver gave up waiting for the card",
        "look in the kernel's log for Xid messages",
    ),
    Code.LIBRARY_NOT_FOUND: (
        "libnvidia-ml.so.1 is not there",
        "give the agent's pod the runtime class nvidia and the driver capability utility",
    ),
    Code.GPU_IS_LOST: (
        "the card has fallen off the bus",
        "drain the node and reboot it; Xid 79 in the kernel's log tells more",
    ),
    Code.RESET_REQUIRED: (
        "the card needs a reset",
        "drain the node and reset the card with nvidia-smi --gpu-reset",
    ),
    Code.OPERATING_SYSTEM: (
        "the operating system keeps the devices from the agent",
        "delete the agent's pod: systemctl daemon-reload takes devices from running containers",
    ),
    Code.LIB_RM_VERSION_MISMATCH: (
        "driver and library are of different versions",
        "finish the driver upgrade; if this stays afterwards, delete the agent's pod",
    ),
    Code.UNKNOWN: (
        "the driver reports an unknown error",
        "look in the kernel's log for Xid messages; if every card says so, delete the agent's pod",
    ),
}
_MEANINGS[Code.NOT_FOUND] = _MEANINGS[Code.INVALID_ARGUMENT]
_MEANINGS[Code.GPU_NOT_FOUND] = _MEANINGS[Code.INVALID_ARGUMENT]
_MEANINGS[Code.FUNCTION_NOT_FOUND] = _MEANINGS[Code.NOT_SUPPORTED]
_OTHER: Final = ("the driver fails", "look in the kernel's log for Xid messages")


def ends_session(failure: NvmlFailure) -> bool:
    """
    Return whether nothing more can be had from this child: only a new process loads a new library.
    """
    return failure.code in _ENDING


def lasts(failure: NvmlFailure) -> bool:
    """Return whether asking again at once is in vain."""
    return failure.code in _LASTING


def trouble_of(failure: NvmlFailure) -> Trouble:
    """Return what is wrong and what to do."""
    if failure.code is None:
        return Trouble(f"{failure.call}: {shown(failure.text)}; update the driver or gpufence")
    reason, remedy = _MEANINGS.get(failure.code, _OTHER)  # type: ignore[call-overload]  # any code
    return Trouble(
        f"{reason} ({failure.call}: code {failure.code}); {remedy}",
        TroubleCode.CONTAINER if failure.code in _OF_THE_CONTAINER else TroubleCode.OTHER,
    )
