"""
The functions of NVML that the library offers, for counting calls and aiming faults.

The order is part of the state file's layout; `library/functions.h` repeats it and a test compares.
"""

from __future__ import annotations

import difflib
import re

from gpufence.errors import InvalidError, Problem

EVERY = "*"

FUNCTIONS = (
    "nvmlInit",
    "nvmlInit_v2",
    "nvmlInitWithFlags",
    "nvmlShutdown",
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlDeviceGetCount",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetHandleByPciBusId",
    "nvmlDeviceGetHandleByPciBusId_v2",
    "nvmlDeviceGetIndex",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetName",
    "nvmlDeviceGetSerial",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetBAR1MemoryInfo",
    "nvmlDeviceGetConfComputeMemSizeInfo",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
    "nvmlDeviceIsMigDeviceHandle",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetComputeInstanceId",
    "nvmlDeviceGetAttributes_v2",
    "nvmlDeviceGetTotalEccErrors",
    "nvmlDeviceGetPersistenceMode",
    "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetDisplayMode",
    "nvmlDeviceGetDisplayActive",
    "nvmlDeviceGetDriverModel",
    "nvmlDeviceGetDriverModel_v2",
    "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetFanSpeed",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetPowerManagementLimit",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetMaxClockInfo",
)

_SUFFIX = re.compile(r"_v\d+$|WithFlags$")


def family(name: str) -> str:
    """
    Strip what tells the versions of one function apart.
    """
    return _SUFFIX.sub("", name)


def span(name: str) -> tuple[int, int]:
    """
    Turn a name into the first and last id it stands for.

    A name without a version stands for all versions, `_v1` for the oldest alone, `*` for all
    functions there are. An unknown name raises: a fault that never fires would prove nothing.
    """
    if name in {EVERY, ""}:
        return 0, len(FUNCTIONS) - 1
    if name.endswith("_v1") and name.removesuffix("_v1") in FUNCTIONS:
        place = FUNCTIONS.index(name.removesuffix("_v1"))
        return place, place
    if family(name) != name and name in FUNCTIONS:
        return FUNCTIONS.index(name), FUNCTIONS.index(name)
    places = [place for place, function in enumerate(FUNCTIONS) if family(function) == name]
    if not places:
        raise _unknown(name)
    return places[0], places[-1]


def _unknown(name: str) -> InvalidError:
    near = difflib.get_close_matches(name, FUNCTIONS, n=1)
    remedy = f"perhaps {near[0]} was meant" if near else "use a name such as nvmlDeviceGetName"
    return InvalidError(Problem("function", name, "is no function of the library", remedy))
