/* Streams and events: all work is done when its call returns, so that nothing is ever pending. */
#define _GNU_SOURCE
#include <time.h>

#include "driver.h"

#define LAST_BUILT_IN 2 /* 0, 1 and 2 are the default streams, of which no object exists */

static bool is_stream(const void *handle)
{
    return (uintptr_t)handle <= LAST_BUILT_IN || as_object(handle, OBJECT_STREAM) != NULL;
}

static int make(enum object_kind kind, struct object **handle, unsigned flags, int number)
{
    struct context *context;
    int code = current_context(&context);
    if (code != CU_SUCCESS)
        return code;
    if (handle == NULL)
        return CU_INVALID_VALUE;
    lock_tables();
    struct object *made = new_object(kind);
    if (made != NULL) {
        made->context = context;
        made->value = flags;
        made->number = number;
        *handle = made;
    }
    unlock_tables();
    return made == NULL ? CU_OUT_OF_MEMORY : CU_SUCCESS;
}

static int destroy(enum object_kind kind, const void *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    struct object *object = as_object(handle, kind);
    if (object != NULL)
        drop_object(object);
    unlock_tables();
    return object == NULL ? CU_INVALID_HANDLE : CU_SUCCESS;
}

static int check_stream(const void *stream)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    return is_stream(stream) ? CU_SUCCESS : CU_INVALID_HANDLE;
}

static int check_event(const void *event)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    return as_object(event, OBJECT_EVENT) != NULL ? CU_SUCCESS : CU_INVALID_HANDLE;
}

EXPORT int cuStreamCreate(struct object **stream, unsigned flags)
{
    return make(OBJECT_STREAM, stream, flags, 0);
}

EXPORT int cuStreamCreateWithPriority(struct object **stream, unsigned flags, int priority)
{
    return make(OBJECT_STREAM, stream, flags, priority);
}

EXPORT int cuStreamDestroy_v2(const void *stream)
{
    return destroy(OBJECT_STREAM, stream);
}

EXPORT int cuStreamSynchronize(const void *stream)
{
    return check_stream(stream);
}

EXPORT int cuStreamQuery(const void *stream)
{
    return check_stream(stream);
}

EXPORT int cuStreamGetPriority(const void *stream, int *priority)
{
    int code = check_stream(stream);
    if (code == CU_SUCCESS) {
        const struct object *object = as_object(stream, OBJECT_STREAM);
        *priority = object == NULL ? 0 : object->number;
    }
    return code;
}

EXPORT int cuStreamGetFlags(const void *stream, unsigned *flags)
{
    int code = check_stream(stream);
    if (code == CU_SUCCESS) {
        const struct object *object = as_object(stream, OBJECT_STREAM);
        *flags = object == NULL ? 0 : (unsigned)object->value;
    }
    return code;
}

EXPORT int cuStreamGetCtx(const void *stream, struct context **context)
{
    int code = check_stream(stream);
    if (code != CU_SUCCESS)
        return code;
    const struct object *object = as_object(stream, OBJECT_STREAM);
    if (object == NULL)
        return current_context(context);
    *context = object->context;
    return CU_SUCCESS;
}

EXPORT int cuStreamIsCapturing(const void *stream, int *status)
{
    int code = check_stream(stream);
    if (code == CU_SUCCESS && status == NULL)
        code = CU_INVALID_VALUE;
    if (code == CU_SUCCESS)
        *status = 0;
    return code;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static _Thread_local int current;
    int before = current;
    current = *mode;
    *mode = before;
    return CU_SUCCESS;
}

EXPORT int cuStreamWaitEvent(const void *stream, const void *event, unsigned flags)
{
    (void)flags;
    int code = check_stream(stream);
    return code != CU_SUCCESS ? code : check_event(event);
}

EXPORT int cuLaunchHostFunc(const void *stream, void (*function)(void *), void *data)
{
    int code = check_stream(stream);
    if (code != CU_SUCCESS || function == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    function(data);
    return CU_SUCCESS;
}

EXPORT int cuStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data,
                               unsigned flags)
{
    (void)flags;
    int code = check_stream(stream);
    if (code != CU_SUCCESS || function == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    function(stream, CU_SUCCESS, data);
    return CU_SUCCESS;
}

EXPORT int cuEventCreate(struct object **event, unsigned flags)
{
    return make(OBJECT_EVENT, event, flags, 0);
}

EXPORT int cuEventDestroy_v2(const void *event)
{
    return destroy(OBJECT_EVENT, event);
}

EXPORT int cuEventRecord(const void *event, const void *stream)
{
    struct timespec now;
    int code = check_event(event);
    if (code == CU_SUCCESS)
        code = check_stream(stream);
    if (code != CU_SUCCESS)
        return code;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct object *object = as_object(event, OBJECT_EVENT);
    object->value = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    object->number = 1;
    return CU_SUCCESS;
}

EXPORT int cuEventRecordWithFlags(const void *event, const void *stream, unsigned flags)
{
    (void)flags;
    return cuEventRecord(event, stream);
}

EXPORT int cuEventQuery(const void *event)
{
    return check_event(event);
}

EXPORT int cuEventSynchronize(const void *event)
{
    return check_event(event);
}

EXPORT int cuEventElapsedTime(float *milliseconds, const void *start, const void *end)
{
    const struct object *one = as_object(start, OBJECT_EVENT), *other = as_object(end, OBJECT_EVENT);
    if (one == NULL || other == NULL || !one->number || !other->number)
        return CU_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(other->value - one->value) / 1e6);
    return CU_SUCCESS;
}

EXPORT int cuEventElapsedTime_v2(float *milliseconds, const void *start, const void *end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}
