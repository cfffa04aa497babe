"""
The state file as Python sees it: the same bytes that `library/state.h` describes in C.

Both sides are written by hand and a test lets the C compiler compare every offset, so that neither
needs the other to be built.
"""

from __future__ import annotations

from ctypes import Array, Structure, c_char, c_int32, c_int64, c_uint32, c_uint64
from enum import IntEnum, IntFlag
from typing import Annotated, TypeAlias, TypeVar, get_type_hints

MAGIC = int.from_bytes(b"gpufence", "little")
VERSION = 7

MAX_CARDS = 16
MAX_INSTANCES = 7
MAX_RECORDS = 1024
MAX_LEVELS = 8
MAX_FAULTS = 64
MAX_ACCOUNTS = 128
MAX_LIMITS = 256
MAX_CHARGES = 4
MAX_FUNCTIONS = 128
TEXT_SIZE = 96
SHORT_TEXT_SIZE = 32
PATH_SIZE = 400

RECORD_LOCKS = 0x10000000
ALLOCATION_LOCK = 0x20000000
"""Whoever changes how much memory is taken holds a lock on this byte; NVML's library never does."""

ANY_CARD = -1
NO_INSTANCE = -1
NOT_SUPPORTED = 0xFFFFFFFF
NO_LIMIT = 0xFFFFFFFFFFFFFFFF


class Liveness(IntEnum):
    """How the library learns whether a process lives."""

    HELD = 0
    CHECKED = 1
    KEPT = 2


class Lists(IntFlag):
    """The process lists of NVML that show a process."""

    COMPUTE = 1
    GRAPHICS = 2
    MPS = 4


class Memacct(IntEnum):
    """How the driver counts memory by control group, as its RmMemacctMode says."""

    OFF = 0
    MISC = 1
    DMEM = 2


class LimitStatus(IntEnum):
    """What an entry of the table of limits is."""

    FREE = 0
    CLAIMED = 1
    SET = 2


class FaultAction(IntEnum):
    """What a fault does to the calls it concerns."""

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
    SHIFT = 11
    DIVIDE = 12
    LINGER = 13


Number: TypeAlias = Annotated[int, c_uint32]
Signed: TypeAlias = Annotated[int, c_int32]
Large: TypeAlias = Annotated[int, c_uint64]
LargeSigned: TypeAlias = Annotated[int, c_int64]
Text: TypeAlias = Annotated[bytes, c_char * TEXT_SIZE]
ShortText: TypeAlias = Annotated[bytes, c_char * SHORT_TEXT_SIZE]
PathText: TypeAlias = Annotated[bytes, c_char * PATH_SIZE]

S = TypeVar("S", bound=type[Structure])


def laid_out(structure: S) -> S:
    """Lay a structure out as its annotations say, in their order."""
    hints = get_type_hints(structure, include_extras=True)
    structure._fields_ = [(name, hint.__metadata__[0]) for name, hint in hints.items()]
    return structure


@laid_out
class InstanceLayout(Structure):
    total: Large
    reserved: Large
    used: Number
    gpu_instance: Number
    compute_instance: Number
    slices: Number
    multiprocessors: Number
    unused: Number
    uuid: Text
    profile: ShortText


@laid_out
class CardLayout(Structure):
    total: Large
    reserved: Large
    extra: Large
    bus: Number
    pci_device: Number
    capability_major: Number
    capability_minor: Number
    temperature: Number
    fan: Number
    idle_milliwatts: Number
    limit_milliwatts: Number
    sm_clock: Number
    memory_clock: Number
    mig_mode: Number
    mig_generation: Number
    mig_reuse: Number
    accounting: Number
    unified: Number
    instances: Annotated[Array[InstanceLayout], InstanceLayout * MAX_INSTANCES]
    uuid: Text
    name: Text
    serial: ShortText


@laid_out
class LevelLayout(Structure):
    since: Large
    sm: Number
    bandwidth: Number
    encoder: Number
    decoder: Number


@laid_out
class ChargeLayout(Structure):
    bytes: Large
    limit: Number
    unused: Number


@laid_out
class RecordLayout(Structure):
    sequence: Large
    memory: Large
    managed: Large
    started: Large
    name_space: Large
    peak: Large
    since: Large
    status: Number
    kind: Number
    pid: Number
    card: Signed
    instance: Signed
    lists: Number
    level_count: Number
    accounted: Number
    levels: Annotated[Array[LevelLayout], LevelLayout * MAX_LEVELS]
    charges: Annotated[Array[ChargeLayout], ChargeLayout * MAX_CHARGES]
    group: PathText


@laid_out
class LimitLayout(Structure):
    soft: Large
    hard: Large
    inode: Large
    status: Number
    card: Signed
    group: PathText


@laid_out
class AccountLayout(Structure):
    peak: Large
    since: Large
    started: Large
    name_space: Large
    pid: Number
    card: Signed


@laid_out
class FaultLayout(Structure):
    seen: Large
    after: Large
    times: Large
    argument: LargeSigned
    active: Number
    action: Number
    first: Number
    last: Number
    card: Signed
    unused: Number


@laid_out
class StateLayout(Structure):
    magic: Large
    version: Number
    size: Number
    driver_epoch: Number
    card_count: Number
    record_count: Number
    fault_count: Number
    order: Annotated[Array[c_uint32], c_uint32 * MAX_CARDS]
    memacct: Number
    totals_capped: Number
    driver: ShortText
    calls: Annotated[Array[c_uint64], c_uint64 * MAX_FUNCTIONS]
    cards: Annotated[Array[CardLayout], CardLayout * MAX_CARDS]
    faults: Annotated[Array[FaultLayout], FaultLayout * MAX_FAULTS]
    account_count: Large
    accounts: Annotated[Array[AccountLayout], AccountLayout * MAX_ACCOUNTS]
    limits: Annotated[Array[LimitLayout], LimitLayout * MAX_LIMITS]
    records: Annotated[Array[RecordLayout], RecordLayout * MAX_RECORDS]
