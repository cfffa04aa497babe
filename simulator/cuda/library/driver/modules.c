/* Modules and kernels can be loaded and looked at; the first launch fails, and says why. */
#include <stdio.h>

#include "driver.h"

#define THREADS 1024

/* Kernels have no code: every one of them is this. */
static const char kernel;

int cuModuleLoadData(struct object **module, const void *image);

static int refuse(const char *name)
{
    fprintf(stderr, "gpufence simulator: %s: kernels do not run on simulated cards\n", name);
    return CU_NOT_SUPPORTED;
}

EXPORT int cuModuleLoadData(struct object **module, const void *image)
{
    struct context *context;
    int code = current_context(&context);
    if (code == CU_SUCCESS && (module == NULL || image == NULL))
        code = CU_INVALID_VALUE;
    if (code != CU_SUCCESS)
        return code;
    lock_tables();
    struct object *made = new_object(OBJECT_MODULE);
    if (made != NULL) {
        made->context = context;
        *module = made;
    }
    unlock_tables();
    return made == NULL ? CU_OUT_OF_MEMORY : CU_SUCCESS;
}

EXPORT int cuModuleLoadDataEx(struct object **module, const void *image, unsigned count,
                              const int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

EXPORT int cuModuleLoadFatBinary(struct object **module, const void *image)
{
    return cuModuleLoadData(module, image);
}

EXPORT int cuModuleUnload(const void *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    struct object *module = as_object(handle, OBJECT_MODULE);
    if (module != NULL)
        drop_object(module);
    unlock_tables();
    return module == NULL ? CU_INVALID_HANDLE : CU_SUCCESS;
}

EXPORT int cuModuleGetFunction(const void **function, const void *module, const char *name)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (function == NULL || name == NULL)
        return CU_INVALID_VALUE;
    if (as_object(module, OBJECT_MODULE) == NULL)
        return CU_INVALID_HANDLE;
    *function = &kernel;
    return CU_SUCCESS;
}

EXPORT int cuModuleGetLoadingMode(int *mode)
{
    if (mode == NULL)
        return CU_INVALID_VALUE;
    *mode = 2; /* lazy */
    return CU_SUCCESS;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, const void *function)
{
    if (value == NULL || function == NULL)
        return CU_INVALID_VALUE;
    *value = attribute == 0 ? THREADS : 0;
    return CU_SUCCESS;
}

EXPORT int cuFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)attribute, (void)value;
    return function == NULL ? CU_INVALID_HANDLE : CU_SUCCESS;
}

EXPORT int cuFuncSetCacheConfig(const void *function, int config)
{
    (void)config;
    return function == NULL ? CU_INVALID_HANDLE : CU_SUCCESS;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int size,
                                                       size_t shared)
{
    (void)function, (void)shared;
    if (blocks == NULL || size <= 0)
        return CU_INVALID_VALUE;
    *blocks = 2 * THREADS / size;
    return CU_SUCCESS;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                int size, size_t shared,
                                                                unsigned flags)
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared);
}

EXPORT int cuLaunchKernel(void)
{
    return refuse("cuLaunchKernel");
}

EXPORT int cuLaunchKernelEx(void)
{
    return refuse("cuLaunchKernelEx");
}

EXPORT int cuLaunchCooperativeKernel(void)
{
    return refuse("cuLaunchCooperativeKernel");
}

EXPORT int cuGraphLaunch(void)
{
    return refuse("cuGraphLaunch");
}
