"""
The state file as Python sees it: the same bytes that `library/state.h` describes in C.

Both sides are written by hand and a test lets the C compiler compare every offset, so that neither
needs the other to be built.
"""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_char, c_int32, c_int64, c_uint32, c_uint64
from enum import IntEnum, IntFlag

MAGIC = int.from_bytes(b"gpufence", "little")
VERSION = 2

MAX_CARDS = 16
MAX_INSTANCES = 7
MAX_RECORDS = 1024
MAX_FAULTS = 64
MAX_FUNCTIONS = 128
TEXT_SIZE = 96
SHORT_TEXT_SIZE = 32

RECORD_LOCKS = 0x10000000
ALLOCATION_LOCK = 0x20000000
"""Whoever changes how much memory is taken holds a lock on this byte; the library never does."""

ANY_CARD = -1
NO_INSTANCE = -1
NOT_SUPPORTED = 0xFFFFFFFF
ID_NOT_AVAILABLE = 0xFFFFFFFF


class Liveness(IntEnum):
    """
    How the library learns whether a process lives.
    """

    HELD = 0
    CHECKED = 1
    KEPT = 2


class Lists(IntFlag):
    """
    The process lists of NVML that show a process.
    """

    COMPUTE = 1
    GRAPHICS = 2
    MPS = 4


class FaultAction(IntEnum):
    """
    What a fault does to the calls it concerns.
    """

    RETURN = 1
    DELAY = 2
    HANG = 3
    CRASH = 4
    NOT_AVAILABLE = 5
    ZERO = 6
    DUPLICATE = 7
    PAD = 8
    KEEP = 9
    GARBLE = 10


class InstanceLayout(Structure):
    total: int
    reserved: int
    used: int
    gpu_instance: int
    compute_instance: int
    slices: int
    multiprocessors: int
    uuid: bytes
    profile: bytes
    _fields_ = (
        ("total", c_uint64),
        ("reserved", c_uint64),
        ("used", c_uint32),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("slices", c_uint32),
        ("multiprocessors", c_uint32),
        ("unused", c_uint32),
        ("uuid", c_char * TEXT_SIZE),
        ("profile", c_char * SHORT_TEXT_SIZE),
    )


class CardLayout(Structure):
    total: int
    reserved: int
    extra: int
    bus: int
    pci_device: int
    capability_major: int
    capability_minor: int
    temperature: int
    fan: int
    idle_milliwatts: int
    limit_milliwatts: int
    sm_clock: int
    memory_clock: int
    mig_mode: int
    mig_generation: int
    mig_reuse: int
    instances: ctypes.Array[InstanceLayout]
    uuid: bytes
    name: bytes
    serial: bytes
    _fields_ = (
        ("total", c_uint64),
        ("reserved", c_uint64),
        ("extra", c_uint64),
        ("bus", c_uint32),
        ("pci_device", c_uint32),
        ("capability_major", c_uint32),
        ("capability_minor", c_uint32),
        ("temperature", c_uint32),
        ("fan", c_uint32),
        ("idle_milliwatts", c_uint32),
        ("limit_milliwatts", c_uint32),
        ("sm_clock", c_uint32),
        ("memory_clock", c_uint32),
        ("mig_mode", c_uint32),
        ("mig_generation", c_uint32),
        ("mig_reuse", c_uint32),
        ("unused", c_uint32),
        ("instances", InstanceLayout * MAX_INSTANCES),
        ("uuid", c_char * TEXT_SIZE),
        ("name", c_char * TEXT_SIZE),
        ("serial", c_char * SHORT_TEXT_SIZE),
    )


class RecordLayout(Structure):
    sequence: int
    memory: int
    managed: int
    started: int
    name_space: int
    status: int
    kind: int
    pid: int
    card: int
    instance: int
    lists: int
    sm: int
    bandwidth: int
    encoder: int
    decoder: int
    _fields_ = (
        ("sequence", c_uint64),
        ("memory", c_uint64),
        ("managed", c_uint64),
        ("started", c_uint64),
        ("name_space", c_uint64),
        ("status", c_uint32),
        ("kind", c_uint32),
        ("pid", c_uint32),
        ("card", c_int32),
        ("instance", c_int32),
        ("lists", c_uint32),
        ("sm", c_uint32),
        ("bandwidth", c_uint32),
        ("encoder", c_uint32),
        ("decoder", c_uint32),
    )


class FaultLayout(Structure):
    seen: int
    after: int
    times: int
    argument: int
    active: int
    action: int
    first: int
    last: int
    card: int
    _fields_ = (
        ("seen", c_uint64),
        ("after", c_uint64),
        ("times", c_uint64),
        ("argument", c_int64),
        ("active", c_uint32),
        ("action", c_uint32),
        ("first", c_uint32),
        ("last", c_uint32),
        ("card", c_int32),
        ("unused", c_uint32),
    )


class StateLayout(Structure):
    magic: int
    version: int
    size: int
    driver_epoch: int
    card_count: int
    record_count: int
    fault_count: int
    order: ctypes.Array[c_uint32]
    driver: bytes
    calls: ctypes.Array[c_uint64]
    cards: ctypes.Array[CardLayout]
    faults: ctypes.Array[FaultLayout]
    records: ctypes.Array[RecordLayout]
    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("driver_epoch", c_uint32),
        ("card_count", c_uint32),
        ("record_count", c_uint32),
        ("fault_count", c_uint32),
        ("order", c_uint32 * MAX_CARDS),
        ("driver", c_char * SHORT_TEXT_SIZE),
        ("calls", c_uint64 * MAX_FUNCTIONS),
        ("cards", CardLayout * MAX_CARDS),
        ("faults", FaultLayout * MAX_FAULTS),
        ("records", RecordLayout * MAX_RECORDS),
    )
