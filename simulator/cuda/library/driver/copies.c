/*
 * Copies and fills.
 *
 * Small contents are kept, so that programs read back what they wrote. Large ones are not: tens of
 * GiB of a card would not fit this machine. Nothing computes, so nobody misses them.
 */
#include <string.h>

#include "driver.h"

#define LARGEST (UINT64_C(4) << 20) /* of one copy that keeps its contents */

static int copy(void *target, const void *source, size_t size)
{
    struct context *context;
    int code = current_context(&context);
    if (code != CU_SUCCESS || size == 0)
        return code;
    if (target == NULL || source == NULL)
        return CU_INVALID_VALUE;
    if (size > LARGEST || !keep_contents((uint64_t)target, size))
        return CU_SUCCESS;
    memmove(target, source, size);
    return CU_SUCCESS;
}

EXPORT int cuMemcpy(address_t target, address_t source, size_t size)
{
    return copy((void *)target, (const void *)source, size);
}

EXPORT int cuMemcpyAsync(address_t target, address_t source, size_t size, const void *stream)
{
    (void)stream;
    return copy((void *)target, (const void *)source, size);
}

EXPORT int cuMemcpyHtoD_v2(address_t target, const void *source, size_t size)
{
    return copy((void *)target, source, size);
}

EXPORT int cuMemcpyDtoH_v2(void *target, address_t source, size_t size)
{
    return copy(target, (const void *)source, size);
}

EXPORT int cuMemcpyDtoD_v2(address_t target, address_t source, size_t size)
{
    return copy((void *)target, (const void *)source, size);
}

EXPORT int cuMemcpyHtoDAsync_v2(address_t target, const void *source, size_t size, const void *stream)
{
    (void)stream;
    return copy((void *)target, source, size);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *target, address_t source, size_t size, const void *stream)
{
    (void)stream;
    return copy(target, (const void *)source, size);
}

EXPORT int cuMemcpyDtoDAsync_v2(address_t target, address_t source, size_t size, const void *stream)
{
    (void)stream;
    return copy((void *)target, (const void *)source, size);
}

EXPORT int cuMemcpyPeerAsync(address_t target, const void *target_context, address_t source,
                             const void *source_context, size_t size, const void *stream)
{
    (void)target_context, (void)source_context, (void)stream;
    return copy((void *)target, (const void *)source, size);
}

/* Repeat a value of 1, 2 or 4 bytes. */
static int fill(uint64_t target, unsigned value, size_t width, size_t count)
{
    struct context *context;
    int code = current_context(&context);
    if (code != CU_SUCCESS || count == 0)
        return code;
    if (target == 0 || target % width != 0)
        return CU_INVALID_VALUE;
    if (count > LARGEST / width || !keep_contents(target, count * width))
        return CU_SUCCESS;
    for (size_t i = 0; i < count; i++)
        memcpy((char *)target + i * width, &value, width); /* little endian */
    return CU_SUCCESS;
}

#define DEFINE_FILL(name, type, width)                                                        \
    EXPORT int cuMemset##name##_v2(address_t target, type value, size_t count)                \
    {                                                                                         \
        return fill(target, value, width, count);                                             \
    }                                                                                         \
    EXPORT int cuMemset##name##Async(address_t target, type value, size_t count, const void *stream) \
    {                                                                                         \
        (void)stream;                                                                         \
        return fill(target, value, width, count);                                             \
    }

DEFINE_FILL(D8, uint8_t, 1)
DEFINE_FILL(D16, uint16_t, 2)
DEFINE_FILL(D32, uint32_t, 4)
