/*
 * What the files of the runtime share, and those parts of its interface that are structures.
 *
 * RUNTIME_VERSION is of the CUDA release whose runtime this is: structures change with each major.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdbool.h>

#include "../api.h"

#ifndef RUNTIME_VERSION
#define RUNTIME_VERSION 13020
#endif
#define BEFORE_13 (RUNTIME_VERSION < 13000)

struct device_properties {
    char name[256];
    struct uuid uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if BEFORE_13
    int clockRate;
#endif
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
#if BEFORE_13
    int deviceOverlap;
#endif
    int multiProcessorCount;
#if BEFORE_13
    int kernelExecTimeoutEnabled;
#endif
    int integrated, canMapHostMemory;
#if BEFORE_13
    int computeMode;
#endif
    int maxTexture1D, maxTexture1DMipmap;
#if BEFORE_13
    int maxTexture1DLinear;
#endif
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
    int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3];
    int maxSurface1DLayered[2], maxSurface2DLayered[3];
    int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing;
#if BEFORE_13
    int memoryClockRate;
#endif
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
#if BEFORE_13
    int singleToDoublePrecisionPerfRatio;
#endif
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if BEFORE_13
    int cooperativeMultiDeviceLaunch;
#endif
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers;
#if BEFORE_13
    int reserved[63];
#else
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
#endif
};

struct pointer_attributes {
    int type, device;
    void *devicePointer, *hostPointer;
#if !BEFORE_13
    long reserved[8];
#endif
};

struct function_attributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion;
};

/* start.c */
int note(int code);
int initialise(void);
int use_device(void);

/* A call that works in the current context, or makes that of the thread's device current first. */
#define IN_CONTEXT(name, parameters, call)          \
    EXPORT int name parameters                      \
    {                                               \
        int code = use_device();                    \
        return note(code != CU_SUCCESS ? code : (call)); \
    }

#endif
