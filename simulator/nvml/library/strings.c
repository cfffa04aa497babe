/* Names, versions and the texts of the codes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "library.h"

/* Hand a text out; a garbled one starts with bytes that no UTF-8 decoder accepts. */
int give_text(const struct call *call, const char *text, char *target, unsigned size)
{
    size_t length = strlen(text);
    if (target == NULL)
        return INVALID_ARGUMENT;
    if (size <= length)
        return INSUFFICIENT_SIZE;
    memcpy(target, text, length + 1);
    if (call->garble && length >= 2)
        memcpy(target, "\xff\xfe", 2);
    return SUCCESS;
}

static const char *driver_version(const struct call *call)
{
    return call->state->driver[0] != '\0' ? call->state->driver : DRIVER_VERSION;
}

EXPORT int nvmlSystemGetDriverVersion(char *target, unsigned size)
{
    struct call call;
    int code = begin(&call, FN_nvmlSystemGetDriverVersion);
    return code != SUCCESS ? code : give_text(&call, driver_version(&call), target, size);
}

static int give_cuda_version(enum function function, int *version)
{
    struct call call;
    int code = begin(&call, function);
    if (code != SUCCESS)
        return code;
    if (version == NULL)
        return INVALID_ARGUMENT;
    *version = CUDA_VERSION;
    return SUCCESS;
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
    return give_cuda_version(FN_nvmlSystemGetCudaDriverVersion, version);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return give_cuda_version(FN_nvmlSystemGetCudaDriverVersion_v2, version);
}

EXPORT int nvmlDeviceGetUUID(device_t device, char *target, unsigned size)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetUUID, device);
    if (code != SUCCESS)
        return code;
    const char *uuid = call.card->uuid;
    if (call.instance != NO_INSTANCE)
        uuid = call.card->instances[call.instance].uuid;
    return give_text(&call, uuid, target, size);
}

EXPORT int nvmlDeviceGetName(device_t device, char *target, unsigned size)
{
    char text[TEXT_SIZE + SHORT_TEXT_SIZE + 8];
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetName, device);
    if (code != SUCCESS)
        return code;
    if (call.instance == NO_INSTANCE)
        return give_text(&call, call.card->name, target, size);
    const char *profile = call.card->instances[call.instance].profile;
    snprintf(text, sizeof text, "%s MIG %s", call.card->name, profile);
    return give_text(&call, text, target, size);
}

EXPORT int nvmlDeviceGetSerial(device_t device, char *target, unsigned size)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetSerial, device);
    return code != SUCCESS ? code : give_text(&call, call.card->serial, target, size);
}

static const struct {
    int code;
    const char *text;
} texts[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "The requested vgpu operation is not available on target device"},
    {23, "Insufficient Resources"},
    {24, "Frequency Not Supported"},
    {25, "Argument version mismatch"},
    {26, "Deprecated"},
    {27, "Not ready"},
    {28, "GPU not found"},
    {29, "Invalid state"},
};

/* Works without init, as NVML's does. */
EXPORT const char *nvmlErrorString(int code)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "Unknown Error";
}
