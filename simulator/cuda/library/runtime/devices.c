/* What the runtime says about devices: all of it is the driver's word. */
#include <string.h>

#include "driver.h"
#include "runtime.h"

static int number(int device, int attribute)
{
    int value = 0;
    cuDeviceGetAttribute(&value, attribute, device);
    return value;
}

static size_t bytes(int device, int attribute)
{
    return (size_t)number(device, attribute);
}

static void fill_limits(struct device_properties *properties, int device)
{
    properties->sharedMemPerBlock = bytes(device, 8);
    properties->regsPerBlock = number(device, 12);
    properties->warpSize = number(device, 10);
    properties->memPitch = bytes(device, 11);
    properties->maxThreadsPerBlock = number(device, 1);
    for (int i = 0; i < 3; i++) {
        properties->maxThreadsDim[i] = number(device, 2 + i);
        properties->maxGridSize[i] = number(device, 5 + i);
    }
    properties->totalConstMem = bytes(device, 9);
    properties->textureAlignment = bytes(device, 14);
    properties->texturePitchAlignment = bytes(device, 51);
    properties->surfaceAlignment = properties->textureAlignment;
    properties->maxThreadsPerMultiProcessor = number(device, 39);
    properties->sharedMemPerMultiprocessor = bytes(device, 81);
    properties->regsPerMultiprocessor = number(device, 82);
    properties->sharedMemPerBlockOptin = bytes(device, 97);
    properties->maxBlocksPerMultiProcessor = number(device, 106);
    properties->reservedSharedMemPerBlock = bytes(device, 111);
}

static void fill_abilities(struct device_properties *properties, int device)
{
    properties->canMapHostMemory = number(device, 19);
    properties->concurrentKernels = number(device, 31);
    properties->ECCEnabled = number(device, 32);
    properties->asyncEngineCount = number(device, 40);
    properties->unifiedAddressing = number(device, 41);
    properties->streamPrioritiesSupported = number(device, 78);
    properties->globalL1CacheSupported = number(device, 79);
    properties->localL1CacheSupported = number(device, 80);
    properties->managedMemory = number(device, 83);
    properties->concurrentManagedAccess = number(device, 89);
    properties->computePreemptionSupported = number(device, 90);
    properties->canUseHostPointerForRegisteredMem = number(device, 91);
    properties->cooperativeLaunch = number(device, 95);
    properties->hostRegisterSupported = number(device, 99);
    properties->memoryPoolsSupported = number(device, 115);
    properties->memoryPoolSupportedHandleTypes = (unsigned)number(device, 119);
    properties->clusterLaunch = number(device, 120);
}

static int fill(struct device_properties *properties, int device)
{
    memset(properties, 0, sizeof *properties);
    cuDeviceGetName(properties->name, sizeof properties->name, device);
    cuDeviceGetUuid_v2(&properties->uuid, device);
    cuDeviceTotalMem_v2(&properties->totalGlobalMem, device);
    properties->major = number(device, ATTRIBUTE_MAJOR);
    properties->minor = number(device, ATTRIBUTE_MINOR);
    properties->multiProcessorCount = number(device, ATTRIBUTE_MULTIPROCESSORS);
    properties->pciBusID = number(device, ATTRIBUTE_PCI_BUS);
    properties->memoryBusWidth = number(device, 37);
    properties->l2CacheSize = number(device, 38);
#if BEFORE_13
    properties->clockRate = number(device, 13);
    properties->memoryClockRate = number(device, 36);
    properties->deviceOverlap = number(device, 15);
    properties->singleToDoublePrecisionPerfRatio = number(device, 87);
    properties->cooperativeMultiDeviceLaunch = number(device, 96);
#endif
    fill_limits(properties, device);
    fill_abilities(properties, device);
    return CU_SUCCESS;
}

static int check(const void *target, int device)
{
    int count;
    int code = initialise();
    if (code == CU_SUCCESS)
        code = cuDeviceGetCount(&count);
    if (code == CU_SUCCESS && target == NULL)
        code = CU_INVALID_VALUE;
    if (code == CU_SUCCESS && (device < 0 || device >= count))
        code = CU_INVALID_DEVICE;
    return note(code);
}

/* The name was versioned once, in 12; 13 went back to the plain one. */
#if BEFORE_13
EXPORT int cudaGetDeviceProperties_v2(struct device_properties *properties, int device)
#else
EXPORT int cudaGetDeviceProperties(struct device_properties *properties, int device)
#endif
{
    int code = check(properties, device);
    return code != CU_SUCCESS ? code : fill(properties, device);
}

EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    int code = check(value, device);
    return code != CU_SUCCESS ? code : note(cuDeviceGetAttribute(value, attribute, device));
}

EXPORT int cudaDeviceGetPCIBusId(char *text, int length, int device)
{
    int code = check(text, device);
    return code != CU_SUCCESS ? code : note(cuDeviceGetPCIBusId(text, length, device));
}

EXPORT int cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    int code = initialise();
    return note(code != CU_SUCCESS ? code : cuDeviceGetByPCIBusId(device, text));
}

EXPORT int cudaDeviceCanAccessPeer(int *possible, int device, int peer)
{
    int code = check(possible, device);
    return code != CU_SUCCESS ? code : note(cuDeviceCanAccessPeer(possible, device, peer));
}

EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)peer, (void)flags;
    return note(CU_PEER_ACCESS_UNSUPPORTED);
}

EXPORT int cudaDeviceDisablePeerAccess(int peer)
{
    (void)peer;
    return note(CU_PEER_ACCESS_UNSUPPORTED);
}

IN_CONTEXT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
           cuCtxGetStreamPriorityRange(least, greatest))

EXPORT int cudaDeviceGetLimit(size_t *value, int limit)
{
    (void)limit;
    if (value == NULL)
        return note(CU_INVALID_VALUE);
    *value = 1024;
    return CU_SUCCESS;
}

EXPORT int cudaDeviceSetLimit(int limit, size_t value)
{
    (void)limit, (void)value;
    return CU_SUCCESS;
}
