/* Contexts: one primary per device and those that a program makes, and which one a thread uses. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MAX_CONTEXTS 256
#define MAX_DEPTH 64
#define DEFAULT_CONTEXT_MIB 300
#define SIZE_VARIABLE "GPUFENCE_SIMULATOR_CONTEXT_MIB"
#define API_VERSION 3020

struct context {
    bool alive;
    int ordinal;
    unsigned references; /* of the primary one */
    unsigned flags;
    uint64_t size; /* memory of the context itself, outside every allocator */
};

/* Primary contexts first, in the order of the devices. A place is never used for two contexts. */
static struct context contexts[MAX_CONTEXTS];
static size_t made = MAX_DEVICES;
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct context *stack[MAX_DEPTH];
static _Thread_local int depth;

void lock_tables(void)
{
    pthread_mutex_lock(&tables);
}

void unlock_tables(void)
{
    pthread_mutex_unlock(&tables);
}

static uint64_t context_size(void)
{
    const char *text = getenv(SIZE_VARIABLE);
    uint64_t mebibytes = text != NULL ? strtoull(text, NULL, 10) : DEFAULT_CONTEXT_MIB;
    return (mebibytes > 0 ? mebibytes : 1) << 20;
}

static struct context *top(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static void set_top(struct context *context)
{
    depth -= depth > 0;
    if (context != NULL)
        stack[depth++] = context;
}

int current_context(struct context **context)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    *context = top();
    if (*context == NULL)
        return CU_INVALID_CONTEXT;
    return (*context)->alive ? CU_SUCCESS : CU_CONTEXT_IS_DESTROYED;
}

int context_ordinal(const struct context *context)
{
    return context->ordinal;
}

static struct context *as_context(const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)contexts;
    if (offset >= sizeof contexts || offset % sizeof contexts[0] != 0)
        return NULL;
    struct context *context = &contexts[offset / sizeof contexts[0]];
    return context->alive ? context : NULL;
}

static bool is_primary(const struct context *context)
{
    return context < contexts + MAX_DEVICES;
}

static int open_context(struct context *context, int ordinal)
{
    context->size = context_size();
    if (!ledger_take(device_at(ordinal), context->size))
        return CU_OUT_OF_MEMORY;
    context->ordinal = ordinal;
    context->alive = true;
    return CU_SUCCESS;
}

static void close_context(struct context *context)
{
    if (!context->alive)
        return;
    if (is_primary(context))
        free_pools_of(context);
    free_allocations_of(context);
    drop_objects_of(context);
    context->alive = false;
    ledger_give(device_at(context->ordinal), context->size);
}

static int check_device(int ordinal)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    return device_at(ordinal) == NULL ? CU_INVALID_DEVICE : CU_SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int ordinal)
{
    int code = check_device(ordinal);
    if (code != CU_SUCCESS || context == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    lock_tables();
    struct context *primary = &contexts[ordinal];
    if (!primary->alive)
        code = open_context(primary, ordinal);
    if (code == CU_SUCCESS) {
        primary->references++;
        *context = primary;
    }
    unlock_tables();
    return code;
}

static int leave_primary(int ordinal, bool at_once)
{
    int code = check_device(ordinal);
    if (code != CU_SUCCESS)
        return code;
    lock_tables();
    struct context *primary = &contexts[ordinal];
    if (!primary->alive && !at_once)
        code = CU_INVALID_CONTEXT;
    bool last = at_once || primary->references <= 1;
    primary->references = last ? 0 : primary->references - 1;
    if (code == CU_SUCCESS && primary->references == 0)
        close_context(primary);
    unlock_tables();
    return code;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int ordinal)
{
    return leave_primary(ordinal, false);
}

EXPORT int cuDevicePrimaryCtxReset_v2(int ordinal)
{
    return leave_primary(ordinal, true);
}

EXPORT int cuDevicePrimaryCtxGetState(int ordinal, unsigned *flags, int *active)
{
    int code = check_device(ordinal);
    if (code != CU_SUCCESS || flags == NULL || active == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    *flags = contexts[ordinal].flags;
    *active = contexts[ordinal].alive;
    return CU_SUCCESS;
}

EXPORT int cuDevicePrimaryCtxSetFlags_v2(int ordinal, unsigned flags)
{
    int code = check_device(ordinal);
    if (code == CU_SUCCESS)
        contexts[ordinal].flags = flags;
    return code;
}

static int push(struct context *context)
{
    if (depth == MAX_DEPTH)
        return CU_INVALID_VALUE;
    stack[depth++] = context;
    return CU_SUCCESS;
}

EXPORT int cuCtxCreate_v2(struct context **context, unsigned flags, int ordinal)
{
    int code = check_device(ordinal);
    if (code != CU_SUCCESS || context == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    lock_tables();
    code = CU_OUT_OF_MEMORY;
    struct context *one = made < MAX_CONTEXTS ? &contexts[made] : NULL;
    if (one != NULL)
        code = open_context(one, ordinal);
    if (code == CU_SUCCESS) {
        made++;
        one->flags = flags;
        *context = one;
    }
    unlock_tables();
    return code == CU_SUCCESS ? push(one) : code;
}

EXPORT int cuCtxCreate_v4(struct context **context, void *settings, unsigned flags, int ordinal)
{
    (void)settings;
    return cuCtxCreate_v2(context, flags, ordinal);
}

EXPORT int cuCtxDestroy_v2(struct context *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    struct context *context = as_context(handle);
    if (context == NULL || is_primary(context))
        return CU_INVALID_CONTEXT; /* primary ones are released */
    lock_tables();
    close_context(context);
    unlock_tables();
    if (top() == context)
        set_top(NULL);
    return CU_SUCCESS;
}

EXPORT int cuCtxPushCurrent_v2(struct context *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    struct context *context = as_context(handle);
    return context == NULL ? CU_INVALID_CONTEXT : push(context);
}

EXPORT int cuCtxPopCurrent_v2(struct context **context)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (depth == 0)
        return CU_INVALID_CONTEXT;
    if (context != NULL)
        *context = top();
    depth--;
    return CU_SUCCESS;
}

EXPORT int cuCtxSetCurrent(struct context *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    struct context *context = as_context(handle);
    if (handle != NULL && context == NULL)
        return CU_INVALID_CONTEXT;
    set_top(context);
    return CU_SUCCESS;
}

EXPORT int cuCtxGetCurrent(struct context **context)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (context == NULL)
        return CU_INVALID_VALUE;
    *context = top();
    return CU_SUCCESS;
}

EXPORT int cuCtxGetDevice(int *ordinal)
{
    struct context *context;
    int code = current_context(&context);
    if (code == CU_SUCCESS && ordinal == NULL)
        code = CU_INVALID_VALUE;
    if (code == CU_SUCCESS)
        *ordinal = context->ordinal;
    return code;
}

EXPORT int cuCtxGetFlags(unsigned *flags)
{
    struct context *context;
    int code = current_context(&context);
    if (code == CU_SUCCESS)
        *flags = context->flags;
    return code;
}

/* Everything is done when its call returns, so there is nothing to wait for. */
EXPORT int cuCtxSynchronize(void)
{
    struct context *context;
    return current_context(&context);
}

EXPORT int cuCtxGetApiVersion(const void *handle, unsigned *version)
{
    if (handle != NULL && as_context(handle) == NULL)
        return CU_INVALID_CONTEXT;
    *version = API_VERSION;
    return CU_SUCCESS;
}
