"""
Our own declarations against the headers that come with a wheel: sizes and offsets agree.

The headers are NVIDIA's and stay where pip put them; only the compiler reads them, in this test.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.cuda.build import RUNTIMES, SOURCES
from simulator.wheels.catalog import WHEEL_SETS
from simulator.wheels.install import is_built, packages_of

pytestmark = pytest.mark.frameworks

RUNTIME = (SOURCES / "runtime" / "runtime.h").read_text(encoding="utf-8")
API = (SOURCES / "api.h").read_text(encoding="utf-8")
LEFT_OUT = frozenset({"reserved"})
OTHER_NAMES = {
    "allocation_properties": (
        "CUmemAllocationProp",
        {"type": "type", "handle_types": "requestedHandleTypes", "location": "location"},
    ),
    "access": ("CUmemAccessDesc", {"location": "location", "flags": "flags"}),
    "pool_properties": (
        "CUmemPoolProps",
        {
            "type": "allocType",
            "handle_types": "handleTypes",
            "location": "location",
            "most": "maxSize",
        },
    ),
    "uuid": ("CUuuid", {"bytes": "bytes"}),
}
SAME_NAMES = {
    "device_properties": "struct cudaDeviceProp",
    "pointer_attributes": "struct cudaPointerAttributes",
}
NUMBERS = {
    "POOL_THRESHOLD": "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD",
    "POOL_RESERVED": "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT",
    "POOL_USED_HIGH": "CU_MEMPOOL_ATTR_USED_MEM_HIGH",
    "POINTER_MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
    "POINTER_IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED",
    "POINTER_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    "POINTER_START": "CU_POINTER_ATTRIBUTE_RANGE_START_ADDR",
    "POINTER_POOL": "CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE",
    "ATTRIBUTE_MULTIPROCESSORS": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "ATTRIBUTE_MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "115": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED",
    "102": "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
    "97": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "CU_OUT_OF_MEMORY": "CUDA_ERROR_OUT_OF_MEMORY",
    "CU_CONTEXT_IS_DESTROYED": "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CU_NOT_SUPPORTED": "CUDA_ERROR_NOT_SUPPORTED",
    "CU_HOST_MEMORY_NOT_REGISTERED": "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
}


def headers_of(major: int) -> list[Path]:
    """
    Return the folders with the headers of a wheel that is here; one of them is for compilers, and
    only comes along with a compiler.
    """
    for one in WHEEL_SETS:
        if one.cuda == major and is_built(one):
            packages = packages_of(one)
            drivers = [path.parent for path in packages.glob("nvidia/*/include/driver_types.h")]
            crt = [path.parents[1] for path in packages.rglob("crt/host_defines.h")]
            if drivers and crt:
                return [drivers[0], crt[0]]
    pytest.skip(f"no wheel with headers of CUDA {major} is built")


def fields_of(name: str) -> list[str]:
    """Return the fields of one of our structures, in any of its forms."""
    body = re.search(rf"struct {name} {{(.*?)\n}};", RUNTIME, re.DOTALL)
    assert body is not None
    code = re.sub(r"#.*", "", body[1])
    declared = re.sub(r"\[[^]]*\]|\*", "", code).replace("struct ", "").split(";")
    names = [
        re.sub(r"^\s*(?:unsigned|int|long|size_t|char|void|uuid)\s+", "", one) for one in declared
    ]
    return [word.strip() for one in names for word in one.split(",") if word.strip()]


def claims() -> Iterator[str]:
    for ours, theirs in SAME_NAMES.items():
        yield f"sizeof(struct {ours}) == sizeof({theirs})"
        for field in fields_of(ours):
            if field not in LEFT_OUT:
                yield f"#{field}#offsetof(struct {ours}, {field}) == offsetof({theirs}, {field})"
    for ours, (theirs, fields) in OTHER_NAMES.items():
        yield f"sizeof(struct {ours}) == sizeof({theirs})"
        for field, other in fields.items():
            yield f"offsetof(struct {ours}, {field}) == offsetof({theirs}, {other})"
    for ours, theirs in NUMBERS.items():
        yield f"{ours} == {theirs}"


@pytest.mark.parametrize("major", RUNTIMES)
def test_declarations_agree_with_the_headers(major: int, tmp_path: Path) -> None:
    """
    The compiler finds each of our structures as large as, and laid out like, the documented one.
    """
    folders = headers_of(major)
    removed = {
        *("clockRate", "deviceOverlap", "kernelExecTimeoutEnabled", "computeMode"),
        *("maxTexture1DLinear", "memoryClockRate", "singleToDoublePrecisionPerfRatio"),
        "cooperativeMultiDeviceLaunch",
    }
    added = {
        *("deviceNumaConfig", "deviceNumaId", "mpsEnabled", "hostNumaId", "gpuPciDeviceID"),
        *("gpuPciSubsystemID", "hostNumaMultinodeIpcSupported"),
    }
    absent = removed if major >= max(RUNTIMES) else added
    checks = []
    for claim in claims():
        field = re.match(r"#(\w+)#", claim)
        if field is None or field[1] not in absent:
            checks.append(re.sub(r"^#\w+#", "", claim))
    lines = "\n".join(f'_Static_assert({one}, "{one}");' for one in checks)
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <cuda.h>\n#include <driver_types.h>\n"
        f'#include "runtime/runtime.h"\n{lines}\n'
    )
    done = subprocess.run(
        [
            *("cc", "-std=gnu11", "-fsyntax-only", f"-DRUNTIME_VERSION={RUNTIMES[major]}"),
            *(f"-I{SOURCES}", *(f"-I{folder}" for folder in folders), str(source)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "" == done.stderr
