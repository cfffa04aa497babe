"""
A process that takes memory of one card by each way that CUDA's driver has, for `verify` to look at.

It is started as a file of its own, needs the standard library alone, finds `libcuda.so.1` by
ctypes, and takes the first card of CUDA_VISIBLE_DEVICES. Lines on standard input are `open`,
`hold KIND BYTES`, `memory` and `release`; each is answered by one line of JSON, with `error` where
CUDA refused.
"""

from __future__ import annotations

import ctypes
import json
import sys
import uuid
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIBRARY: Final = "libcuda.so.1"
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_UUID_BYTES: Final = 16
_ON_DEVICE: Final = 1  # CU_MEM_LOCATION_TYPE_DEVICE
_PINNED: Final = 1  # CU_MEM_ALLOCATION_TYPE_PINNED
_READ_WRITE: Final = 3  # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
_GLOBAL: Final = 1  # CU_MEM_ATTACH_GLOBAL
_MINIMUM: Final = 0  # CU_MEM_ALLOC_GRANULARITY_MINIMUM
_DEFAULT_STREAM: Final = None

_Pointer = ctypes.c_uint64
_Size = ctypes.c_size_t


class CudaError(Exception):
    """Raised with the call that failed, and by what code or for want of what."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp of 32 bytes; zero is right for all that is not named."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class CudaDevice:
    """
    One card as CUDA numbers them, with its primary context. `hold` takes memory of a kind of
    `KINDS`, `release` gives back all that was taken.
    """

    def __init__(self) -> None:
        self._library = _load()
        self._ordinal = ctypes.c_int()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(self._ordinal), 0)
        self._undo: list[Callable[[], None]] = []

    @property
    def uuid(self) -> str:
        """Return the name that NVML has for it, too."""
        raw = (ctypes.c_ubyte * _UUID_BYTES)()
        known = hasattr(self._library, "cuDeviceGetUuid_v2")  # the first knows no MIG instances
        name = "cuDeviceGetUuid_v2" if known else "cuDeviceGetUuid"
        self._call(name, ctypes.byref(raw), self._ordinal)
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    @property
    def total_bytes(self) -> int:
        total = _Size()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(total), self._ordinal)
        return total.value

    def open(self) -> None:
        """Make the context current, which takes memory of its own."""
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._ordinal)
        self._call("cuCtxSetCurrent", context)

    def memory(self) -> tuple[int, int]:
        """Return what is free, and the total, as a program of this container is told."""
        free, total = _Size(), _Size()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def hold(self, kind: str, size: int) -> None:
        KINDS[kind](self, size)
        self._call("cuCtxSynchronize")

    def release(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._call("cuCtxSynchronize")

    def _malloc(self, size: int) -> None:
        address = _Pointer()
        self._call("cuMemAlloc_v2", ctypes.byref(address), _Size(size))
        self._undo.append(lambda: self._call("cuMemFree_v2", address))

    def _managed(self, size: int) -> None:
        """Pages are on the card only once it has had use of them, or is told to fetch them."""
        address = _Pointer()
        self._call("cuMemAllocManaged", ctypes.byref(address), _Size(size), _GLOBAL)
        self._undo.append(lambda: self._call("cuMemFree_v2", address))
        self._call("cuMemsetD8_v2", address, 1, _Size(size))

    def _pool(self, size: int) -> None:
        address, pool = _Pointer(), ctypes.c_void_p()
        self._call("cuMemAllocAsync", ctypes.byref(address), _Size(size), _DEFAULT_STREAM)
        self._undo.append(lambda: self._call("cuMemPoolTrimTo", pool, _Size(0)))
        self._undo.append(lambda: self._call("cuCtxSynchronize"))
        self._undo.append(lambda: self._call("cuMemFreeAsync", address, _DEFAULT_STREAM))
        self._call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), self._ordinal)

    def _virtual(self, size: int) -> None:
        location = _Location(_ON_DEVICE, self._ordinal.value)
        properties = _Properties(type=_PINNED, location=location)
        access = _Access(location, _READ_WRITE)
        whole = _Size(self._rounded(size, properties))
        handle, address = ctypes.c_void_p(), _Pointer()
        nothing = _Pointer(0)
        self._call("cuMemCreate", ctypes.byref(handle), whole, ctypes.byref(properties), nothing)
        self._undo.append(lambda: self._call("cuMemRelease", handle))
        self._call("cuMemAddressReserve", ctypes.byref(address), whole, _Size(0), nothing, nothing)
        self._undo.append(lambda: self._call("cuMemAddressFree", address, whole))
        self._call("cuMemMap", address, whole, _Size(0), handle, nothing)
        self._undo.append(lambda: self._call("cuMemUnmap", address, whole))
        self._call("cuMemSetAccess", address, whole, ctypes.byref(access), _Size(1))

    def _rounded(self, size: int, properties: _Properties) -> int:
        step = _Size()
        wanted = ctypes.byref(step), ctypes.byref(properties), _MINIMUM
        self._call("cuMemGetAllocationGranularity", *wanted)
        return -(-size // step.value) * step.value

    def _call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise CudaError(f"{name}: this driver does not have it")
        code = function(*arguments)
        if code:
            raise CudaError(f"{name}: {self._error(code)}")

    def _error(self, code: int) -> str:
        name = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        return name.value.decode(errors="replace") if name.value else f"error {code}"


KINDS: Final[dict[str, Callable[[CudaDevice, int], None]]] = {
    "malloc": CudaDevice._malloc,  # noqa: SLF001 - the table of its own ways
    "pool": CudaDevice._pool,  # noqa: SLF001
    "virtual": CudaDevice._virtual,  # noqa: SLF001
    "managed": CudaDevice._managed,  # noqa: SLF001
}


def _load() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise CudaError(f"{LIBRARY} cannot be loaded: {error}") from None


def main() -> int:
    """Obey the lines of standard input."""
    _obey(sys.stdin, sys.stdout)
    return 0


def _obey(lines: Iterable[str], stdout: TextIO) -> None:
    try:
        device = CudaDevice()
        _answer(stdout, {"uuid": device.uuid, "total": device.total_bytes})
    except CudaError as error:
        _answer(stdout, {"error": str(error)})
        return
    for line in lines:
        try:
            _answer(stdout, _done(device, line.split()))
        except CudaError as error:
            _answer(stdout, {"error": str(error)})


def _done(device: CudaDevice, words: list[str]) -> dict[str, object]:
    match words:
        case ["open"]:
            device.open()
        case ["hold", kind, size]:
            device.hold(kind, int(size))
        case ["release"]:
            device.release()
        case ["memory"]:
            free, total = device.memory()
            return {"free": free, "total": total}
        case _:
            return {"error": f"{' '.join(words)!r} is no line for this program"}
    return {}


def _answer(stdout: TextIO, answer: dict[str, object]) -> None:
    stdout.write(json.dumps(answer) + "\n")
    stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
