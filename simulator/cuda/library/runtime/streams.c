/* Streams, events and host functions, as the runtime names them. */
#include "driver.h"
#include "runtime.h"

IN_CONTEXT(cudaStreamCreate, (void **stream), cuStreamCreateWithPriority(stream, 0, 0))
IN_CONTEXT(cudaStreamCreateWithFlags, (void **stream, unsigned flags),
           cuStreamCreateWithPriority(stream, flags, 0))
IN_CONTEXT(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority),
           cuStreamCreateWithPriority(stream, flags, priority))
IN_CONTEXT(cudaStreamDestroy, (const void *stream), cuStreamDestroy_v2(stream))
IN_CONTEXT(cudaStreamSynchronize, (const void *stream), cuStreamSynchronize(stream))
IN_CONTEXT(cudaStreamQuery, (const void *stream), cuStreamQuery(stream))
IN_CONTEXT(cudaStreamGetPriority, (const void *stream, int *priority),
           cuStreamGetPriority(stream, priority))
IN_CONTEXT(cudaStreamIsCapturing, (const void *stream, int *status),
           cuStreamIsCapturing(stream, status))
IN_CONTEXT(cudaStreamWaitEvent, (const void *stream, const void *event, unsigned flags),
           cuStreamWaitEvent(stream, event, flags))
IN_CONTEXT(cudaStreamAddCallback,
           (void *stream, void (*function)(void *, int, void *), void *data, unsigned flags),
           cuStreamAddCallback(stream, function, data, flags))
IN_CONTEXT(cudaLaunchHostFunc, (const void *stream, void (*function)(void *), void *data),
           cuLaunchHostFunc(stream, function, data))

IN_CONTEXT(cudaEventCreate, (void **event), cuEventCreate(event, 0))
IN_CONTEXT(cudaEventCreateWithFlags, (void **event, unsigned flags), cuEventCreate(event, flags))
IN_CONTEXT(cudaEventDestroy, (const void *event), cuEventDestroy_v2(event))
IN_CONTEXT(cudaEventRecord, (const void *event, const void *stream), cuEventRecord(event, stream))
IN_CONTEXT(cudaEventRecordWithFlags, (const void *event, const void *stream, unsigned flags),
           ((void)flags, cuEventRecord(event, stream)))
IN_CONTEXT(cudaEventQuery, (const void *event), cuEventQuery(event))
IN_CONTEXT(cudaEventSynchronize, (const void *event), cuEventSynchronize(event))
IN_CONTEXT(cudaEventElapsedTime, (float *milliseconds, const void *start, const void *end),
           cuEventElapsedTime(milliseconds, start, end))

EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    return note(cuThreadExchangeStreamCaptureMode(mode));
}

/* No stream is ever captured: there would be no kernels in the graph. */
static int not_capturing(const void *stream, int *status)
{
    return status == NULL ? CU_INVALID_VALUE : cuStreamIsCapturing(stream, status);
}

IN_CONTEXT(cudaStreamGetCaptureInfo, (const void *stream, int *status),
           not_capturing(stream, status))
IN_CONTEXT(cudaStreamGetCaptureInfo_v2, (const void *stream, int *status),
           not_capturing(stream, status))
