/* Kernels are registered and asked about; to launch one fails. */
#include <string.h>

#include "driver.h"
#include "runtime.h"

#define THREADS 1024
#define REGISTERS 32

/* A compiler's own calls around each program's kernels. They know no errors. */
EXPORT void **__cudaRegisterFatBinary(const void *binary)
{
    static void *registered;
    (void)binary;
    return &registered;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

EXPORT void __cudaRegisterFunction(void)
{
}

EXPORT void __cudaRegisterVar(void)
{
}

EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 0;
}

EXPORT unsigned __cudaPushCallConfiguration(void)
{
    return 0;
}

EXPORT int __cudaPopCallConfiguration(unsigned *grid, unsigned *block, size_t *shared, void **stream)
{
    memset(grid, 0, 3 * sizeof *grid);
    memset(block, 0, 3 * sizeof *block);
    *shared = 0;
    *stream = NULL;
    return CU_SUCCESS;
}

EXPORT int __cudaGetKernel(const void **kernel, const void *entry)
{
    *kernel = entry;
    return CU_SUCCESS;
}

IN_CONTEXT(cudaLaunchKernel, (void), cuLaunchKernel())
IN_CONTEXT(cudaLaunchKernelExC, (void), cuLaunchKernel())
IN_CONTEXT(cudaLaunchCooperativeKernel, (void), cuLaunchKernel())
IN_CONTEXT(__cudaLaunchKernel, (void), cuLaunchKernel())
IN_CONTEXT(cudaGraphLaunch, (void), cuGraphLaunch())

static int describe(struct function_attributes *attributes)
{
    int device, major = 0, minor = 0;
    if (attributes == NULL)
        return CU_INVALID_VALUE;
    cuCtxGetDevice(&device);
    cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device);
    cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device);
    attributes->sharedSizeBytes = attributes->constSizeBytes = attributes->localSizeBytes = 0;
    attributes->maxThreadsPerBlock = THREADS;
    attributes->numRegs = REGISTERS;
    attributes->ptxVersion = attributes->binaryVersion = 10 * major + minor;
    return CU_SUCCESS;
}

IN_CONTEXT(cudaFuncGetAttributes, (struct function_attributes *attributes, const void *function),
           ((void)function, describe(attributes)))

EXPORT int cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)attribute, (void)value;
    return note(function == NULL ? CU_INVALID_VALUE : CU_SUCCESS);
}

EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int size,
                                                         size_t shared)
{
    (void)function, (void)shared;
    if (blocks == NULL || size <= 0)
        return note(CU_INVALID_VALUE);
    *blocks = 2 * THREADS / size;
    return CU_SUCCESS;
}

EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                  int size, size_t shared,
                                                                  unsigned flags)
{
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared);
}

EXPORT int cudaProfilerStart(void)
{
    return CU_SUCCESS;
}

EXPORT int cudaProfilerStop(void)
{
    return CU_SUCCESS;
}
