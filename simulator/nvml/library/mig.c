/* The MIG tree: a card in MIG mode, its instances and what they are made of. */
#define _GNU_SOURCE
#include "library.h"

EXPORT int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetMigMode, device);
    if (code != SUCCESS)
        return code;
    if (current == NULL || pending == NULL)
        return INVALID_ARGUMENT;
    if (call.card->mig_mode == NOT_SUPPORTED_VALUE)
        return NOT_SUPPORTED;
    *current = *pending = call.card->mig_mode;
    return SUCCESS;
}

/* 0, not an error, for cards without MIG: programs loop up to this count. */
EXPORT int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetMaxMigDeviceCount, device);
    if (code != SUCCESS)
        return code;
    if (count == NULL)
        return INVALID_ARGUMENT;
    *count = call.card->mig_mode == NOT_SUPPORTED_VALUE ? 0 : MAX_INSTANCES;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (code != SUCCESS)
        return code;
    if (instance == NULL || index >= MAX_INSTANCES)
        return INVALID_ARGUMENT;
    if (call.card->mig_mode == NOT_SUPPORTED_VALUE)
        return NOT_SUPPORTED;
    if (call.card->mig_mode != 1 || !call.card->instances[index].used)
        return NOT_FOUND;
    *instance = handle_of(&call, call.slot, (int32_t)index);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device_t instance, device_t *device)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle, instance);
    if (code != SUCCESS)
        return code;
    if (device == NULL || call.instance == NO_INSTANCE)
        return INVALID_ARGUMENT;
    *device = handle_of(&call, call.slot, NO_INSTANCE);
    return SUCCESS;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(device_t device, unsigned *answer)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceIsMigDeviceHandle, device);
    if (code != SUCCESS)
        return code;
    if (answer == NULL)
        return INVALID_ARGUMENT;
    *answer = call.instance != NO_INSTANCE;
    return SUCCESS;
}

/* Begin a call that is only possible on an instance. */
static int begin_instance(struct call *call, enum function function, device_t device,
                          const void *target)
{
    int code = begin_device(call, function, device);
    if (code != SUCCESS)
        return code;
    if (target == NULL)
        return INVALID_ARGUMENT;
    return call->instance == NO_INSTANCE ? NOT_SUPPORTED : SUCCESS;
}

EXPORT int nvmlDeviceGetGpuInstanceId(device_t device, unsigned *id)
{
    struct call call;
    int code = begin_instance(&call, FN_nvmlDeviceGetGpuInstanceId, device, id);
    if (code == SUCCESS)
        *id = call.card->instances[call.instance].gpu_instance;
    return code;
}

EXPORT int nvmlDeviceGetComputeInstanceId(device_t device, unsigned *id)
{
    struct call call;
    int code = begin_instance(&call, FN_nvmlDeviceGetComputeInstanceId, device, id);
    if (code == SUCCESS)
        *id = call.card->instances[call.instance].compute_instance;
    return code;
}

EXPORT int nvmlDeviceGetAttributes_v2(device_t device, struct attributes *attributes)
{
    struct call call;
    int code = begin_instance(&call, FN_nvmlDeviceGetAttributes_v2, device, attributes);
    if (code != SUCCESS)
        return code;
    const struct instance *instance = &call.card->instances[call.instance];
    *attributes = (struct attributes){
        .multiprocessors = instance->multiprocessors,
        .copy_engines = instance->slices,
        .decoders = instance->slices / 2,
        .gpu_slices = instance->slices,
        .compute_slices = instance->slices,
        .memory_mib = instance->total >> 20,
    };
    return SUCCESS;
}
