/* GPU performance monitoring: what a card or MIG instance did between two samples. Hopper and later. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "library.h"

#define METRIC_GRAPHICS_UTIL 1
#define METRIC_SM_UTIL 2
#define FIRST_CAPABILITY 9

/* A sample knows where it was taken; the work itself is in the records. */
struct gpm_sample {
    uint64_t time;
    int32_t slot;
    int32_t instance;
};

static bool has_gpm(const struct call *call)
{
    return call->card->capability_major >= FIRST_CAPABILITY;
}

EXPORT int nvmlGpmQueryDeviceSupport(device_t device, struct gpm_support *support)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlGpmQueryDeviceSupport, device);
    if (code != SUCCESS)
        return code;
    if (support == NULL)
        return INVALID_ARGUMENT;
    support->supported = has_gpm(&call);
    return SUCCESS;
}

EXPORT int nvmlGpmSampleAlloc(struct gpm_sample **sample)
{
    struct call call;
    int code = begin(&call, FN_nvmlGpmSampleAlloc);
    if (code != SUCCESS)
        return code;
    if (sample == NULL)
        return INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample == NULL ? MEMORY : SUCCESS;
}

EXPORT int nvmlGpmSampleFree(struct gpm_sample *sample)
{
    struct call call;
    int code = begin(&call, FN_nvmlGpmSampleFree);
    if (code == SUCCESS)
        free(sample);
    return code;
}

static int take(const struct call *call, int32_t instance, struct gpm_sample *sample)
{
    if (sample == NULL)
        return INVALID_ARGUMENT;
    if (!has_gpm(call))
        return NOT_SUPPORTED;
    *sample = (struct gpm_sample){sample_time(), call->slot, instance};
    return SUCCESS;
}

EXPORT int nvmlGpmSampleGet(device_t device, struct gpm_sample *sample)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlGpmSampleGet, device);
    return code == SUCCESS ? take(&call, NO_INSTANCE, sample) : code;
}

/* The card's handle and the id of the GPU instance, not the instance's own handle. */
EXPORT int nvmlGpmMigSampleGet(device_t device, unsigned gpu_instance, struct gpm_sample *sample)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlGpmMigSampleGet, device);
    if (code != SUCCESS)
        return code;
    for (int32_t i = 0; call.card->mig_mode == 1 && i < MAX_INSTANCES; i++) {
        const struct instance *instance = &call.card->instances[i];
        if (instance->used && instance->gpu_instance == gpu_instance)
            return take(&call, i, sample);
    }
    return INVALID_ARGUMENT;
}

/* Percent of the time in between, of all processes there. */
static double between(struct call *call, const struct gpm_sample *first,
                      const struct gpm_sample *second)
{
    struct seen seen;
    struct work sum = {0};
    call->slot = first->slot;
    call->instance = first->instance;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++) {
        if (look(call, slot, &seen))
            add_work(&seen.record, first->time, second->time, &sum);
    }
    uint64_t time = second->time - first->time;
    double percent = time == 0 ? 0 : (double)sum.sm / (double)time;
    return percent < 100 ? percent : 100;
}

EXPORT int nvmlGpmMetricsGet(struct gpm_metrics *wanted)
{
    struct call call;
    int code = begin(&call, FN_nvmlGpmMetricsGet);
    if (code != SUCCESS)
        return code;
    if (wanted == NULL || wanted->first == NULL || wanted->second == NULL)
        return INVALID_ARGUMENT;
    if (wanted->version != 1)
        return ARGUMENT_VERSION_MISMATCH;
    const struct gpm_sample *first = wanted->first, *second = wanted->second;
    if (first->slot != second->slot || first->instance != second->instance)
        return INVALID_ARGUMENT;
    if (second->time < first->time)
        return INVALID_ARGUMENT;
    for (uint32_t i = 0; i < wanted->count; i++) {
        struct gpm_metric *metric = &wanted->metrics[i];
        bool known = metric->id == METRIC_GRAPHICS_UTIL || metric->id == METRIC_SM_UTIL;
        metric->code = known ? SUCCESS : NOT_SUPPORTED;
        metric->value = known ? between(&call, first, second) : 0;
    }
    return SUCCESS;
}
