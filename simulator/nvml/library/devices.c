/* What a card is and how much memory it has. */
#define _GNU_SOURCE
#include <stdio.h>

#include "library.h"

#define NVIDIA_SUBSYSTEM UINT32_C(0x10de)
#define BAR1_BYTES (UINT64_C(256) << 20)

struct amounts {
    uint64_t total, reserved, allocated, free;
};

static uint64_t rest(uint64_t total, uint64_t taken)
{
    return taken < total ? total - taken : 0;
}

static struct amounts measure(const struct call *call)
{
    struct amounts amounts = {.allocated = used_by_processes(call)};
    if (call->instance == NO_INSTANCE) {
        amounts.total = call->card->total;
        amounts.reserved = call->card->reserved;
        amounts.allocated += call->card->extra;
    } else {
        amounts.total = call->card->instances[call->instance].total;
        amounts.reserved = call->card->instances[call->instance].reserved;
    }
    amounts.free = rest(amounts.total, amounts.reserved + amounts.allocated);
    return amounts;
}

#if MEMORY_INFO_V2
/* Since r615 version 2 answers for the caller's own control group, and version 1 for the card. */
static struct amounts limited(const struct call *call)
{
    struct amounts amounts = measure(call);
    uint64_t used, limit = shown_limit(call, own_group(), &used);
    if (call->state->totals_capped && limit < amounts.total) {
        amounts.total = limit;
        amounts.reserved = 0;
        amounts.free = rest(limit, used) < amounts.free ? rest(limit, used) : amounts.free;
    }
    return amounts;
}
#endif

/* Version 1 counts the reserved memory as used. */
EXPORT int nvmlDeviceGetMemoryInfo(device_t device, struct memory *memory)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetMemoryInfo, device);
    if (code != SUCCESS)
        return code;
    if (memory == NULL)
        return INVALID_ARGUMENT;
    if (hidden_by_mig(&call))
        return NO_PERMISSION;
    if (call.card->unified)
        return NOT_SUPPORTED;
    struct amounts amounts = measure(&call);
    *memory = (struct memory){
        .total = amounts.total,
        .free = amounts.free,
        .used = rest(amounts.total, amounts.free),
    };
    return SUCCESS;
}

#if MEMORY_INFO_V2
EXPORT int nvmlDeviceGetMemoryInfo_v2(device_t device, struct memory_v2 *memory)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetMemoryInfo_v2, device);
    if (code != SUCCESS)
        return code;
    if (memory == NULL)
        return INVALID_ARGUMENT;
    if (memory->version != VERSIONED(struct memory_v2, 2))
        return ARGUMENT_VERSION_MISMATCH;
    if (hidden_by_mig(&call))
        return NO_PERMISSION;
    if (call.card->unified)
        return NOT_SUPPORTED;
    struct amounts amounts = limited(&call);
    *memory = (struct memory_v2){
        .version = memory->version,
        .total = amounts.total,
        .reserved = amounts.reserved,
        .free = amounts.free,
        .used = rest(rest(amounts.total, amounts.free), amounts.reserved),
    };
    return SUCCESS;
}
#endif

EXPORT int nvmlDeviceGetBAR1MemoryInfo(device_t device, struct bar1_memory *memory)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetBAR1MemoryInfo, device);
    if (code != SUCCESS)
        return code;
    if (memory == NULL)
        return INVALID_ARGUMENT;
    *memory = (struct bar1_memory){.total = BAR1_BYTES, .free = BAR1_BYTES};
    return SUCCESS;
}

#if PROTECTED_MEMORY
/* No card of ours runs confidential computing: all of its memory is unprotected. */
EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(device_t device, struct protected_memory_size *size)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetConfComputeMemSizeInfo, device);
    if (code != SUCCESS)
        return code;
    if (size == NULL)
        return INVALID_ARGUMENT;
    *size = (struct protected_memory_size){.unprotected_kib = call.card->total >> 10};
    return SUCCESS;
}
#endif

EXPORT int nvmlDeviceGetPciInfo_v3(device_t device, struct pci_info *info)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetPciInfo_v3, device);
    if (code != SUCCESS)
        return code;
    if (info == NULL)
        return INVALID_ARGUMENT;
    unsigned bus = call.card->bus & 0xff;
    *info = (struct pci_info){
        .bus = bus, .pci_device = call.card->pci_device, .pci_subsystem = NVIDIA_SUBSYSTEM,
    };
    snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "0000:%02X:00.0", bus);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(device_t device, int *major, int *minor)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceGetCudaComputeCapability, device);
    if (code != SUCCESS)
        return code;
    if (major == NULL || minor == NULL)
        return INVALID_ARGUMENT;
    *major = (int)call.card->capability_major;
    *minor = (int)call.card->capability_minor;
    return SUCCESS;
}

static int give_number(int code, uint32_t value, unsigned *target)
{
    if (code != SUCCESS)
        return code;
    if (target == NULL)
        return INVALID_ARGUMENT;
    if (value == NOT_SUPPORTED_VALUE)
        return NOT_SUPPORTED;
    *target = value;
    return SUCCESS;
}

#define DEFINE_NUMBER(name, value)                                       \
    EXPORT int name(device_t device, unsigned *target)                   \
    {                                                                    \
        struct call call;                                                \
        int code = begin_card(&call, FN_##name, device);                 \
        return give_number(code, code == SUCCESS ? (value) : 0, target); \
    }

DEFINE_NUMBER(nvmlDeviceGetPersistenceMode, 1)
DEFINE_NUMBER(nvmlDeviceGetComputeMode, 0)
DEFINE_NUMBER(nvmlDeviceGetDisplayMode, 0)
DEFINE_NUMBER(nvmlDeviceGetDisplayActive, 0)

/* WDDM and TCC are words of Windows. */
static int no_driver_model(enum function function, device_t device)
{
    struct call call;
    int code = begin_card(&call, function, device);
    return code != SUCCESS ? code : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetDriverModel(device_t device, unsigned *current, unsigned *pending)
{
    (void)current, (void)pending;
    return no_driver_model(FN_nvmlDeviceGetDriverModel, device);
}

EXPORT int nvmlDeviceGetDriverModel_v2(device_t device, unsigned *current, unsigned *pending)
{
    (void)current, (void)pending;
    return no_driver_model(FN_nvmlDeviceGetDriverModel_v2, device);
}

EXPORT int nvmlDeviceGetTotalEccErrors(device_t device, unsigned error, unsigned counter,
                                       unsigned long long *count)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetTotalEccErrors, device);
    if (code != SUCCESS)
        return code;
    if (error > 1 || counter > 1 || count == NULL)
        return INVALID_ARGUMENT;
    *count = 0;
    return SUCCESS;
}
