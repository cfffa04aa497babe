/* The process lists, in every version and width that drivers have had. */
#define _GNU_SOURCE
#include <string.h>

#include "library.h"

#define MOST_ENTRIES (3 * MAX_RECORDS)
#define PADDING_PID UINT32_C(0x3f0000) /* beyond what a busy machine reaches, below pid_max */
#define PADDING_BYTES UINT64_C(0x100000)

struct listing {
    size_t count;
    struct process_info entries[MOST_ENTRIES];
};

static uint64_t shown_memory(const struct call *call, const struct record *record)
{
    if (call->not_available)
        return VALUE_NOT_AVAILABLE;
    if (call->zero)
        return 0;
    return call->divide ? record->memory / call->divide : record->memory;
}

static void append(struct listing *listing, const struct process_info *entry)
{
    if (listing->count < MOST_ENTRIES)
        listing->entries[listing->count++] = *entry;
}

/* A process with several instances is one entry: the first instance, all of the memory. */
static bool merge(struct listing *listing, const struct process_info *entry)
{
    for (size_t i = 0; i < listing->count; i++) {
        struct process_info *known = &listing->entries[i];
        if (known->pid != entry->pid)
            continue;
        if (known->memory != VALUE_NOT_AVAILABLE)
            known->memory += entry->memory;
        return true;
    }
    return false;
}

static void collect(const struct call *call, uint32_t lists, struct listing *listing)
{
    struct seen seen;
    listing->count = 0;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++) {
        if ((call->state->records[slot].lists & lists) == 0 || !look(call, slot, &seen))
            continue;
        if (seen.presence == ELSEWHERE)
            continue;
        struct process_info entry = {
            .pid = seen.pid + call->shift,
            .memory = shown_memory(call, &seen.record),
            .gpu_instance = ID_NOT_AVAILABLE,
            .compute_instance = ID_NOT_AVAILABLE,
        };
        if (seen.record.instance != NO_INSTANCE) {
            const struct instance *instance = &call->card->instances[seen.record.instance];
            entry.gpu_instance = instance->gpu_instance;
            entry.compute_instance = instance->compute_instance;
        }
        if (!merge(listing, &entry))
            append(listing, &entry);
    }
}

/* Let the faults of this call change the list. */
static void distort(const struct call *call, struct listing *listing)
{
    if (listing->count > call->keep)
        listing->count = (size_t)call->keep;
    size_t honest = listing->count;
    for (uint64_t again = 1; again < call->repeat; again++)
        for (size_t i = 0; i < honest; i++)
            append(listing, &listing->entries[i]);
    for (uint32_t i = 0; i < call->pad; i++) {
        struct process_info entry = {
            .pid = PADDING_PID + i,
            .memory = PADDING_BYTES,
            .gpu_instance = ID_NOT_AVAILABLE,
            .compute_instance = ID_NOT_AVAILABLE,
        };
        append(listing, &entry);
    }
}

static int list(const struct call *call, uint32_t lists, struct listing *listing)
{
    if (hidden_by_mig(call))
        return NO_PERMISSION;
    collect(call, lists, listing);
    distort(call, listing);
    return SUCCESS;
}

/* The double call: too small a buffer, or none, is answered with the size it takes. */
static int answer(enum function function, device_t device, uint32_t lists, unsigned *count,
                  void *entries, size_t width)
{
    struct call call;
    struct listing listing;
    int code = begin_device(&call, function, device);
    if (code != SUCCESS)
        return code;
    if (count == NULL || (entries == NULL && *count != 0))
        return INVALID_ARGUMENT;
    code = list(&call, lists, &listing);
    if (code != SUCCESS)
        return code;
    bool fits = *count >= listing.count;
    *count = (unsigned)listing.count;
    if (!fits)
        return INSUFFICIENT_SIZE;
    for (size_t i = 0; i < listing.count; i++)
        memcpy((char *)entries + i * width, &listing.entries[i], width);
    return SUCCESS;
}

#define DEFINE_LIST(name, lists, width)                                     \
    EXPORT int name(device_t device, unsigned *count, void *entries)        \
    {                                                                       \
        return answer(FN_##name, device, lists, count, entries, (width));   \
    }

DEFINE_LIST(nvmlDeviceGetComputeRunningProcesses, LIST_COMPUTE, 16)
DEFINE_LIST(nvmlDeviceGetGraphicsRunningProcesses, LIST_GRAPHICS, 16)
#if LIST_V2
DEFINE_LIST(nvmlDeviceGetComputeRunningProcesses_v2, LIST_COMPUTE, 24)
DEFINE_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, LIST_GRAPHICS, 24)
DEFINE_LIST(nvmlDeviceGetMPSComputeRunningProcesses, LIST_MPS, 16)
DEFINE_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, LIST_MPS, 24)
#endif
#if LIST_V3
DEFINE_LIST(nvmlDeviceGetComputeRunningProcesses_v3, LIST_COMPUTE, LIST_V3_ENTRY)
DEFINE_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, LIST_GRAPHICS, LIST_V3_ENTRY)
DEFINE_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, LIST_MPS, LIST_V3_ENTRY)
#endif

#if DETAIL_LIST
#define HOPPER 9

/* Cards before Hopper blame the argument's version rather than say that they cannot. */
EXPORT int nvmlDeviceGetRunningProcessDetailList(device_t device, struct process_list *wanted)
{
    static const uint32_t modes[] = {
        LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS, LIST_COMPUTE | LIST_GRAPHICS | LIST_MPS,
    };
    struct call call;
    struct listing listing;
    int code = begin_device(&call, FN_nvmlDeviceGetRunningProcessDetailList, device);
    if (code != SUCCESS)
        return code;
    if (wanted == NULL || wanted->mode > 3)
        return INVALID_ARGUMENT;
    if (wanted->version != VERSIONED(struct process_list, 1) || call.card->capability_major < HOPPER)
        return ARGUMENT_VERSION_MISMATCH;
    if (wanted->entries == NULL && wanted->count != 0)
        return INVALID_ARGUMENT;
    code = list(&call, modes[wanted->mode], &listing);
    if (code != SUCCESS)
        return code;
    bool fits = wanted->count >= listing.count;
    wanted->count = (uint32_t)listing.count;
    if (!fits)
        return INSUFFICIENT_SIZE;
    memcpy(wanted->entries, listing.entries, listing.count * sizeof listing.entries[0]);
    return SUCCESS;
}
#endif
