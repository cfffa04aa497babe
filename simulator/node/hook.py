"""
What the toolkit's hook does with NVML, as a program: LIBRARY GROUP SOFT HARD UUID...

A process has one library and one state file, and a node beside others has several of both. It is
run as a file, by a Python without its site folder: it starts in a few milliseconds.
"""

import ctypes
import sys
from pathlib import Path

SET = "nvmlDeviceSetMemoryLimits_v1"
LOOKUP_ERROR = 127


class _Limits(ctypes.Structure):
    _fields_ = (
        ("name_space", ctypes.c_char_p),
        ("soft", ctypes.c_ulonglong),
        ("hard", ctypes.c_ulonglong),
    )


def main(library: str, group: str, soft: str, hard: str, *uuids: str) -> int:
    nvml = ctypes.CDLL(library)
    nvml.nvmlErrorString.restype = ctypes.c_char_p
    if code := nvml.nvmlInit_v2():
        return _fail(f"failed to initialize nvml: {nvml.nvmlErrorString(code).decode()}")
    for uuid in uuids:
        device = ctypes.c_void_p()
        if code := nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
            why = nvml.nvmlErrorString(code).decode()
            return _fail(f"failed to get GPU device handle with uuid {uuid}: {why}")
        if not hasattr(nvml, SET):
            return _fail(
                f"symbol lookup error: {Path(library).name}: undefined symbol: {SET}", LOOKUP_ERROR
            )
        wanted = _Limits(group.encode(), int(soft), int(hard))
        if code := nvml.nvmlDeviceSetMemoryLimits_v1(device, ctypes.byref(wanted)):
            why = nvml.nvmlErrorString(code).decode()
            return _fail(f'failed to set memory limits for gpu "{uuid}": {why}')
    return 0


def _fail(text: str, code: int = 1) -> int:
    sys.stderr.write(text)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
