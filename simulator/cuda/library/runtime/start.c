/* Start on demand: the runtime makes its context when a call first needs one, and keeps errors. */
#include <pthread.h>

#include "../errors.h"
#include "driver.h"
#include "runtime.h"

static _Thread_local int chosen; /* this thread's device */
static _Thread_local int last_error;
static _Atomic(void *) primaries[16];

int note(int code)
{
    if (code != CU_SUCCESS)
        last_error = code;
    return code;
}

int initialise(void)
{
    return cuInit(0);
}

static int use_primary(int device)
{
    void *context = primaries[device];
    if (context != NULL && cuCtxSetCurrent(context) == CU_SUCCESS)
        return CU_SUCCESS;
    int code = cuDevicePrimaryCtxRetain(&context, device);
    if (code != CU_SUCCESS)
        return code;
    primaries[device] = context;
    return cuCtxSetCurrent(context);
}

int use_device(void)
{
    int device;
    int code = initialise();
    if (code != CU_SUCCESS)
        return code;
    return cuCtxGetDevice(&device) == CU_SUCCESS ? CU_SUCCESS : use_primary(chosen);
}

EXPORT int cudaGetDeviceCount(int *count)
{
    if (count == NULL)
        return note(CU_INVALID_VALUE);
    int code = initialise();
    if (code != CU_SUCCESS)
        *count = 0;
    return note(code != CU_SUCCESS ? code : cuDeviceGetCount(count));
}

EXPORT int cudaGetDevice(int *device)
{
    if (device == NULL)
        return note(CU_INVALID_VALUE);
    int code = initialise();
    if (code == CU_SUCCESS && cuCtxGetDevice(device) != CU_SUCCESS)
        *device = chosen;
    return note(code);
}

EXPORT int cudaSetDevice(int device)
{
    int count;
    int code = initialise();
    if (code == CU_SUCCESS)
        code = cuDeviceGetCount(&count);
    if (code == CU_SUCCESS && (device < 0 || device >= count))
        code = CU_INVALID_DEVICE;
    if (code == CU_SUCCESS)
        code = use_primary(chosen = device);
    return note(code);
}

EXPORT int cudaDeviceReset(void)
{
    int device;
    int code = initialise();
    if (code != CU_SUCCESS)
        return note(code);
    if (cuCtxGetDevice(&device) != CU_SUCCESS)
        device = chosen;
    return note(cuDevicePrimaryCtxReset_v2(device));
}

IN_CONTEXT(cudaDeviceSynchronize, (void), cuCtxSynchronize())

EXPORT int cudaGetLastError(void)
{
    int code = last_error;
    last_error = CU_SUCCESS;
    return code;
}

EXPORT int cudaPeekAtLastError(void)
{
    return last_error;
}

EXPORT const char *cudaGetErrorName(int code)
{
    switch (code) {
#define NAME(number, driver_name, name, text) \
    case number: return name;
        ERRORS(NAME)
#undef NAME
    }
    return "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(int code)
{
    switch (code) {
#define TEXT(number, driver_name, name, text) \
    case number: return text;
        ERRORS(TEXT)
#undef TEXT
    }
    return "unrecognized error code";
}

EXPORT int cudaDriverGetVersion(int *version)
{
    return note(cuDriverGetVersion(version));
}

EXPORT int cudaRuntimeGetVersion(int *version)
{
    if (version == NULL)
        return note(CU_INVALID_VALUE);
    *version = RUNTIME_VERSION;
    return CU_SUCCESS;
}

EXPORT int cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
                                            unsigned long long flags, int *status)
{
    int found;
    int code = initialise();
    if (code != CU_SUCCESS)
        return note(code);
    cuGetProcAddress_v2(name, entry, (int)version, flags, &found);
    if (status != NULL)
        *status = found; /* the result of the search; the call itself has worked */
    return CU_SUCCESS;
}

EXPORT int cudaGetDriverEntryPoint(const char *name, void **entry, unsigned long long flags,
                                   int *status)
{
    return cudaGetDriverEntryPointByVersion(name, entry, RUNTIME_VERSION, flags, status);
}
