/*
 * Every function of NVML that the library offers, as ids for counters and faults.
 *
 * The versions of one function stand together, so that a fault can name them as a range; the ids
 * are part of the state file's layout (simulator/nvml/faults.py reads them here).
 */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#define FUNCTIONS(X)                              \
    X(nvmlInit)                                   \
    X(nvmlInit_v2)                                \
    X(nvmlInitWithFlags)                          \
    X(nvmlShutdown)                               \
    X(nvmlSystemGetDriverVersion)                 \
    X(nvmlSystemGetCudaDriverVersion)             \
    X(nvmlSystemGetCudaDriverVersion_v2)          \
    X(nvmlDeviceGetCount)                         \
    X(nvmlDeviceGetCount_v2)                      \
    X(nvmlDeviceGetHandleByIndex)                 \
    X(nvmlDeviceGetHandleByIndex_v2)              \
    X(nvmlDeviceGetHandleByUUID)                  \
    X(nvmlDeviceGetHandleByPciBusId)              \
    X(nvmlDeviceGetHandleByPciBusId_v2)           \
    X(nvmlDeviceGetIndex)                         \
    X(nvmlDeviceGetUUID)                          \
    X(nvmlDeviceGetName)                          \
    X(nvmlDeviceGetSerial)                        \
    X(nvmlDeviceGetCudaComputeCapability)         \
    X(nvmlDeviceGetPciInfo_v3)                    \
    X(nvmlDeviceGetMemoryInfo)                    \
    X(nvmlDeviceGetMemoryInfo_v2)                 \
    X(nvmlDeviceGetMemoryLimits_v1)               \
    X(nvmlDeviceSetMemoryLimits_v1)               \
    X(nvmlDeviceGetBAR1MemoryInfo)                \
    X(nvmlDeviceGetConfComputeMemSizeInfo)        \
    X(nvmlDeviceGetComputeRunningProcesses)       \
    X(nvmlDeviceGetComputeRunningProcesses_v2)    \
    X(nvmlDeviceGetComputeRunningProcesses_v3)    \
    X(nvmlDeviceGetGraphicsRunningProcesses)      \
    X(nvmlDeviceGetGraphicsRunningProcesses_v2)   \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3)   \
    X(nvmlDeviceGetMPSComputeRunningProcesses)    \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v2) \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
    X(nvmlDeviceGetRunningProcessDetailList)      \
    X(nvmlDeviceGetUtilizationRates)              \
    X(nvmlDeviceGetProcessUtilization)            \
    X(nvmlDeviceGetEncoderUtilization)            \
    X(nvmlDeviceGetDecoderUtilization)            \
    X(nvmlDeviceGetAccountingMode)                \
    X(nvmlDeviceSetAccountingMode)                \
    X(nvmlDeviceGetAccountingStats)               \
    X(nvmlDeviceGetAccountingPids)                \
    X(nvmlDeviceGetAccountingBufferSize)          \
    X(nvmlDeviceClearAccountingPids)              \
    X(nvmlDeviceGetMigMode)                       \
    X(nvmlDeviceGetMaxMigDeviceCount)             \
    X(nvmlDeviceGetMigDeviceHandleByIndex)        \
    X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) \
    X(nvmlDeviceIsMigDeviceHandle)                \
    X(nvmlDeviceGetGpuInstanceId)                 \
    X(nvmlDeviceGetComputeInstanceId)             \
    X(nvmlDeviceGetAttributes_v2)                 \
    X(nvmlDeviceGetTotalEccErrors)                \
    X(nvmlDeviceGetPersistenceMode)               \
    X(nvmlDeviceGetComputeMode)                   \
    X(nvmlDeviceGetDisplayMode)                   \
    X(nvmlDeviceGetDisplayActive)                 \
    X(nvmlDeviceGetDriverModel)                   \
    X(nvmlDeviceGetDriverModel_v2)                \
    X(nvmlDeviceGetPerformanceState)              \
    X(nvmlDeviceGetTemperature)                   \
    X(nvmlDeviceGetTemperatureV)                  \
    X(nvmlDeviceGetFanSpeed)                      \
    X(nvmlDeviceGetPowerUsage)                    \
    X(nvmlDeviceGetEnforcedPowerLimit)            \
    X(nvmlDeviceGetPowerManagementLimit)          \
    X(nvmlDeviceGetClockInfo)                     \
    X(nvmlDeviceGetMaxClockInfo)                  \
    X(nvmlDeviceGetCurrPcieLinkGeneration)        \
    X(nvmlDeviceGetNvLinkRemoteDeviceType)        \
    X(nvmlDeviceGetNvLinkRemotePciInfo_v2)        \
    X(nvmlDeviceGetGpuFabricInfoV)                \
    X(nvmlGpmQueryDeviceSupport)                  \
    X(nvmlGpmSampleAlloc)                         \
    X(nvmlGpmSampleFree)                          \
    X(nvmlGpmSampleGet)                           \
    X(nvmlGpmMigSampleGet)                        \
    X(nvmlGpmMetricsGet)

#define FUNCTION_ID(name) FN_##name,
enum function { FUNCTIONS(FUNCTION_ID) FUNCTION_COUNT };
#undef FUNCTION_ID

#endif
