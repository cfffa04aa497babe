/* Utilization: what the live processes say they do, sampled as drivers sample it. */
#define _GNU_SOURCE
#include "library.h"

#define GARBAGE 3735928559u /* no percentage */

struct sampling {
    uint32_t count;
    struct process_sample samples[MAX_RECORDS];
};

static uint32_t at_most_100(uint32_t percent)
{
    return percent < 100 ? percent : 100;
}

struct utilization utilization(const struct call *call)
{
    struct seen seen;
    struct utilization sum = {0, 0};
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (look(call, slot, &seen)) {
            struct level level = level_of(&seen.record);
            sum.gpu = at_most_100(sum.gpu + level.sm);
            sum.memory = at_most_100(sum.memory + level.bandwidth);
        }
    return sum;
}

/* The average over so long; what was there at all never rounds to nothing. */
static uint32_t average(uint64_t sum, uint64_t microseconds)
{
    return at_most_100((uint32_t)((sum + microseconds - 1) / microseconds));
}

/*
 * One entry for each process that had some use since then, averaged over all the time since then.
 * Asked for everything, that is the driver's whole buffer: late, low, and of who stopped long ago.
 */
static void sample(const struct call *call, uint64_t last_seen, struct sampling *sampling)
{
    struct seen seen;
    uint64_t now = sample_time();
    uint64_t oldest = now - BUFFER_SAMPLES * SAMPLE_MICROSECONDS;
    uint64_t after = last_seen > oldest ? last_seen : oldest;
    sampling->count = 0;
    if (now <= after)
        return;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++) {
        struct work sum = {0};
        if (!look(call, slot, &seen) || seen.presence == ELSEWHERE)
            continue;
        if (!add_work(&seen.record, after, now, &sum))
            continue;
        sampling->samples[sampling->count++] = (struct process_sample){
            .pid = seen.pid,
            .time = sum.newest,
            .sm = average(sum.sm, now - after),
            .bandwidth = average(sum.bandwidth, now - after),
            .encoder = average(sum.encoder, now - after),
            .decoder = average(sum.decoder, now - after),
        };
    }
    /* Zombies: entries that name nobody, full of what the memory held before. */
    for (uint64_t i = 0; i < call->pad && sampling->count < MAX_RECORDS; i++)
        sampling->samples[sampling->count++] =
            (struct process_sample){.time = now, .sm = GARBAGE, .bandwidth = GARBAGE + 1};
}

/* Shared by both functions; MIG has no utilization at all. */
static int begin_sampling(struct call *call, enum function function, device_t device)
{
    int code = begin_card(call, function, device);
    return code == SUCCESS && call->card->mig_mode == 1 ? NOT_SUPPORTED : code;
}

EXPORT int nvmlDeviceGetUtilizationRates(device_t device, struct utilization *rates)
{
    struct call call;
    int code = begin_sampling(&call, FN_nvmlDeviceGetUtilizationRates, device);
    if (code != SUCCESS)
        return code;
    if (rates == NULL)
        return INVALID_ARGUMENT;
    *rates = utilization(&call);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetProcessUtilization(device_t device, struct process_sample *samples,
                                           unsigned *count, unsigned long long last_seen)
{
    struct call call;
    struct sampling sampling;
    int code = begin_sampling(&call, FN_nvmlDeviceGetProcessUtilization, device);
    if (code != SUCCESS)
        return code;
    if (count == NULL)
        return INVALID_ARGUMENT;
    sample(&call, last_seen, &sampling);
    if (sampling.count == 0)
        return NOT_FOUND;
    bool fits = samples != NULL && *count >= sampling.count;
    *count = sampling.count;
    if (!fits)
        return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < sampling.count; i++)
        samples[i] = sampling.samples[i];
    return SUCCESS;
}

/* NVENC and NVDEC: the busiest process speaks for the engine. */
static int engine(enum function function, device_t device, unsigned *percent, unsigned *period)
{
    struct call call;
    struct seen seen;
    int code = begin_sampling(&call, function, device);
    if (code != SUCCESS)
        return code;
    if (percent == NULL || period == NULL)
        return INVALID_ARGUMENT;
    *percent = 0;
    *period = (unsigned)SAMPLE_MICROSECONDS;
    for (uint32_t slot = 0; slot < call.state->record_count && slot < MAX_RECORDS; slot++) {
        if (!look(&call, slot, &seen))
            continue;
        bool encodes = function == FN_nvmlDeviceGetEncoderUtilization;
        struct level level = level_of(&seen.record);
        uint32_t share = encodes ? level.encoder : level.decoder;
        if (share > *percent)
            *percent = share;
    }
    return SUCCESS;
}

EXPORT int nvmlDeviceGetEncoderUtilization(device_t device, unsigned *percent, unsigned *period)
{
    return engine(FN_nvmlDeviceGetEncoderUtilization, device, percent, period);
}

EXPORT int nvmlDeviceGetDecoderUtilization(device_t device, unsigned *percent, unsigned *period)
{
    return engine(FN_nvmlDeviceGetDecoderUtilization, device, percent, period);
}
