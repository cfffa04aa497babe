/* Memory, pools and copies, as the runtime names them. */
#include "driver.h"
#include "runtime.h"

#define DEFAULT_KIND 4 /* of copies: the addresses tell */

/* Nothing wanted is nothing given, without an error. */
static bool is_nothing(void **address, size_t size)
{
    if (address != NULL && size == 0)
        *address = NULL;
    return address != NULL && size == 0;
}

static int allocate(void **address, size_t size)
{
    return is_nothing(address, size) ? CU_SUCCESS : cuMemAlloc_v2((address_t *)address, size);
}

static int allocate_host(void **address, size_t size, unsigned flags)
{
    return is_nothing(address, size) ? CU_SUCCESS : cuMemHostAlloc(address, size, flags);
}

IN_CONTEXT(cudaMalloc, (void **address, size_t size), allocate(address, size))
IN_CONTEXT(cudaMallocManaged, (void **address, size_t size, unsigned flags),
           cuMemAllocManaged((address_t *)address, size, flags))
IN_CONTEXT(cudaMallocHost, (void **address, size_t size), allocate_host(address, size, 0))
IN_CONTEXT(cudaHostAlloc, (void **address, size_t size, unsigned flags),
           allocate_host(address, size, flags))
IN_CONTEXT(cudaFree, (void *address), cuMemFree_v2((address_t)address))
IN_CONTEXT(cudaFreeHost, (void *address), cuMemFreeHost(address))
IN_CONTEXT(cudaHostRegister, (void *address, size_t size, unsigned flags),
           cuMemHostRegister_v2(address, size, flags))
IN_CONTEXT(cudaHostUnregister, (void *address), cuMemHostUnregister(address))
IN_CONTEXT(cudaHostGetDevicePointer, (void **address, void *host, unsigned flags),
           cuMemHostGetDevicePointer_v2((address_t *)address, host, flags))
IN_CONTEXT(cudaMemGetInfo, (size_t *free_bytes, size_t *total), cuMemGetInfo_v2(free_bytes, total))

IN_CONTEXT(cudaMallocAsync, (void **address, size_t size, const void *stream),
           cuMemAllocAsync((address_t *)address, size, stream))
IN_CONTEXT(cudaMallocFromPoolAsync,
           (void **address, size_t size, const void *pool, const void *stream),
           cuMemAllocFromPoolAsync((address_t *)address, size, pool, stream))
IN_CONTEXT(cudaFreeAsync, (void *address, const void *stream),
           cuMemFreeAsync((address_t)address, stream))
IN_CONTEXT(cudaDeviceGetDefaultMemPool, (void **pool, int device),
           cuDeviceGetDefaultMemPool(pool, device))
IN_CONTEXT(cudaDeviceGetMemPool, (void **pool, int device), cuDeviceGetMemPool(pool, device))
IN_CONTEXT(cudaDeviceSetMemPool, (int device, const void *pool), cuDeviceSetMemPool(device, pool))
IN_CONTEXT(cudaMemPoolCreate, (void **pool, const struct pool_properties *properties),
           cuMemPoolCreate(pool, properties))
IN_CONTEXT(cudaMemPoolDestroy, (void *pool), cuMemPoolDestroy(pool))
IN_CONTEXT(cudaMemPoolGetAttribute, (const void *pool, int attribute, void *value),
           cuMemPoolGetAttribute(pool, attribute, value))
IN_CONTEXT(cudaMemPoolSetAttribute, (const void *pool, int attribute, const void *value),
           cuMemPoolSetAttribute(pool, attribute, value))
IN_CONTEXT(cudaMemPoolSetAccess, (const void *pool, const struct access *access, size_t count),
           cuMemPoolSetAccess(pool, access, count))
IN_CONTEXT(cudaMemPoolTrimTo, (const void *pool, size_t keep), cuMemPoolTrimTo(pool, keep))

static int copy(void *target, const void *source, size_t size, int kind)
{
    if (kind < 0 || kind > DEFAULT_KIND)
        return CU_INVALID_VALUE;
    return cuMemcpyAsync((address_t)target, (address_t)source, size, NULL);
}

static int fill(void *target, int value, size_t size)
{
    return cuMemsetD8_v2((address_t)target, (uint8_t)value, size);
}

static int copy_rows(char *target, size_t target_pitch, const char *source, size_t source_pitch,
                     size_t width, size_t height)
{
    int code = width <= target_pitch && width <= source_pitch ? CU_SUCCESS : CU_INVALID_VALUE;
    for (size_t row = 0; row < height && code == CU_SUCCESS; row++)
        code = copy(target + row * target_pitch, source + row * source_pitch, width, DEFAULT_KIND);
    return code;
}

IN_CONTEXT(cudaMemcpy, (void *target, const void *source, size_t size, int kind),
           copy(target, source, size, kind))
IN_CONTEXT(cudaMemcpyAsync,
           (void *target, const void *source, size_t size, int kind, const void *stream),
           ((void)stream, copy(target, source, size, kind)))
IN_CONTEXT(cudaMemcpyPeer,
           (void *target, int target_device, const void *source, int source_device, size_t size),
           ((void)target_device, (void)source_device, copy(target, source, size, DEFAULT_KIND)))
IN_CONTEXT(cudaMemcpyPeerAsync,
           (void *target, int target_device, const void *source, int source_device, size_t size,
            const void *stream),
           ((void)target_device, (void)source_device, (void)stream,
            copy(target, source, size, DEFAULT_KIND)))
IN_CONTEXT(cudaMemcpy2D,
           (void *target, size_t target_pitch, const void *source, size_t source_pitch,
            size_t width, size_t height, int kind),
           ((void)kind, copy_rows(target, target_pitch, source, source_pitch, width, height)))
IN_CONTEXT(cudaMemcpy2DAsync,
           (void *target, size_t target_pitch, const void *source, size_t source_pitch,
            size_t width, size_t height, int kind, const void *stream),
           ((void)kind, (void)stream,
            copy_rows(target, target_pitch, source, source_pitch, width, height)))
IN_CONTEXT(cudaMemset, (void *target, int value, size_t size), fill(target, value, size))
IN_CONTEXT(cudaMemsetAsync, (void *target, int value, size_t size, const void *stream),
           ((void)stream, fill(target, value, size)))

static int describe(struct pointer_attributes *attributes, const void *address)
{
    unsigned type = 0, managed = 0;
    if (attributes == NULL)
        return CU_INVALID_VALUE;
    *attributes = (struct pointer_attributes){.device = -2};
    if (cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, (address_t)address) != CU_SUCCESS) {
        attributes->hostPointer = (void *)address;
        return CU_SUCCESS; /* of no device: type 0 */
    }
    cuPointerGetAttribute(&managed, POINTER_IS_MANAGED, (address_t)address);
    cuPointerGetAttribute(&attributes->device, POINTER_ORDINAL, (address_t)address);
    attributes->type = managed ? 3 : (int)type;
    attributes->devicePointer = (void *)address;
    if (managed || type == MEMORY_HOST)
        attributes->hostPointer = (void *)address;
    return CU_SUCCESS;
}

IN_CONTEXT(cudaPointerGetAttributes, (struct pointer_attributes *attributes, const void *address),
           describe(attributes, address))

/* Advice changes nothing here, where no page ever moves. */
EXPORT int cudaMemAdvise(void)
{
    return CU_SUCCESS;
}

EXPORT int cudaMemPrefetchAsync(void)
{
    return CU_SUCCESS;
}
