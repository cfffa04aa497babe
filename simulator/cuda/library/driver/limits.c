/* What programs ask or set of a context that changes nothing here. */
#include "driver.h"

#define STACK_BYTES 1024
#define GREATEST_PRIORITY (-5)

EXPORT int cuCtxSetLimit(int limit, size_t value)
{
    struct context *context;
    (void)limit, (void)value;
    return current_context(&context);
}

EXPORT int cuCtxGetLimit(size_t *value, int limit)
{
    struct context *context;
    int code = current_context(&context);
    (void)limit;
    if (code == CU_SUCCESS)
        *value = STACK_BYTES;
    return code;
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct context *context;
    int code = current_context(&context);
    if (code == CU_SUCCESS && least != NULL)
        *least = 0;
    if (code == CU_SUCCESS && greatest != NULL)
        *greatest = GREATEST_PRIORITY;
    return code;
}

/* No peers: cuDeviceCanAccessPeer says so. */
EXPORT int cuCtxEnablePeerAccess(const void *peer, unsigned flags)
{
    (void)peer, (void)flags;
    return CU_PEER_ACCESS_UNSUPPORTED;
}
