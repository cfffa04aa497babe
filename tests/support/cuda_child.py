"""
A program of the simulated driver and runtime, in a process of its own.

It calls them as C does, by ctypes. Each line of input is a Python expression, each line of output a
JSON object, as in `nvml_child`.
"""

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tests.support.nvml_child import answer

DEVICE = 1
MIB = 1 << 20
driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL(None)


class Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class AllocationProperties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("rest", ctypes.c_char * 16),
    )


class PoolProperties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("rest", ctypes.c_char * 72),
    )


class AccessDescription(ctypes.Structure):
    _fields_ = (("location", Location), ("flags", ctypes.c_int))


def wide(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


def given(function: Any, *arguments: Any, kind: Any = ctypes.c_uint64) -> list[int]:
    """Call what writes its result to its first argument: the code, and what was written."""
    result = kind()
    code = function(ctypes.byref(result), *arguments)
    return [code, result.value or 0]


def init() -> int:
    return int(driver.cuInit(0))


def devices() -> int:
    return given(driver.cuDeviceGetCount, kind=ctypes.c_int)[1]


def use(device: int) -> int:
    """Make the device's primary context this thread's."""
    code, context = given(driver.cuDevicePrimaryCtxRetain, device)
    return code or int(driver.cuCtxSetCurrent(wide(context)))


def leave(device: int) -> int:
    return int(driver.cuDevicePrimaryCtxRelease_v2(device))


def take(size: int) -> list[int]:
    return given(driver.cuMemAlloc_v2, wide(size))


def give(address: int) -> int:
    return int(driver.cuMemFree_v2(wide(address)))


def room() -> list[int]:
    """What is free, and what there is in all."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    code = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return [code, free.value, total.value]


def uuid(device: int) -> str:
    buffer = (ctypes.c_ubyte * 16)()
    driver.cuDeviceGetUuid_v2(buffer, device)
    return bytes(buffer).hex()


def text(function: Any, device: int) -> str:
    buffer = ctypes.create_string_buffer(256)
    function(buffer, 256, device)
    return buffer.value.decode()


def attribute(number: int, device: int = 0) -> int:
    return given(driver.cuDeviceGetAttribute, number, device, kind=ctypes.c_int)[1]


def create(size: int, device: int = 0) -> list[int]:
    wanted = AllocationProperties(1, 0, Location(DEVICE, device))
    return given(driver.cuMemCreate, wide(size), ctypes.byref(wanted), wide(0))


def reserve(size: int) -> list[int]:
    return given(driver.cuMemAddressReserve, wide(size), wide(0), wide(0), wide(0))


def map_memory(address: int, size: int, handle: int) -> int:
    return int(driver.cuMemMap(wide(address), wide(size), wide(0), wide(handle), wide(0)))


def allow(address: int, size: int) -> int:
    access = AccessDescription(Location(DEVICE, 0), 3)
    return int(driver.cuMemSetAccess(wide(address), wide(size), ctypes.byref(access), wide(1)))


def unmap(address: int, size: int) -> int:
    return int(driver.cuMemUnmap(wide(address), wide(size)))


def release(handle: int) -> int:
    return int(driver.cuMemRelease(wide(handle)))


def default_pool() -> int:
    return given(driver.cuDeviceGetDefaultMemPool, 0)[1]


def make_pool() -> int:
    wanted = PoolProperties(1, 0, Location(DEVICE, 0))
    return given(driver.cuMemPoolCreate, ctypes.byref(wanted))[1]


def pooled(size: int, pool: int | None = None) -> list[int]:
    if pool is None:
        return given(driver.cuMemAllocAsync, wide(size), None)
    return given(driver.cuMemAllocFromPoolAsync, wide(size), wide(pool), None)


def give_pooled(address: int) -> int:
    return int(driver.cuMemFreeAsync(wide(address), None))


def pool_number(pool: int, number: int) -> int:
    value = ctypes.c_uint64()
    driver.cuMemPoolGetAttribute(wide(pool), number, ctypes.byref(value))
    return value.value


def set_threshold(pool: int, size: int) -> int:
    value = ctypes.c_uint64(size)
    return int(driver.cuMemPoolSetAttribute(wide(pool), 4, ctypes.byref(value)))


def echo(address: int, content: bytes) -> str:
    """Copy to the card and back."""
    back = ctypes.create_string_buffer(len(content))
    driver.cuMemcpyHtoD_v2(wide(address), content, wide(len(content)))
    driver.cuMemcpyDtoH_v2(back, wide(address), wide(len(content)))
    return back.raw.decode()


def entry(name: str, version: int) -> list[int]:
    """The code of a search for an entry, and whether what was found is that very function."""
    found = ctypes.c_void_p()
    code = driver.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(found), version, wide(0), ctypes.byref(ctypes.c_int())
    )
    return [code, found.value or 0]


def address_of(name: str) -> int:
    return ctypes.cast(getattr(driver, name), ctypes.c_void_p).value or 0


def call_back() -> list[str]:
    """Let a stream call a function of ours."""
    called: list[str] = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: called.append("called"))
    driver.cuLaunchHostFunc(None, function, None)
    return called


def in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    """What the work returns in so many threads at once."""
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def in_child(work: Callable[[], Any]) -> Any:
    """What the work returns in a process that was forked off."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    result = os.read(reading, 4096)
    os.close(reading)
    os.waitpid(pid, 0)
    return json.loads(result)


def main() -> None:
    names: dict[str, Any] = dict(globals())
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(line.strip(), names)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
