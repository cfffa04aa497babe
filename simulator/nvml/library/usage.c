/* Utilization: what the live processes say they do, sampled as drivers sample it. */
#define _GNU_SOURCE
#include <time.h>

#include "library.h"

#define SAMPLE_MICROSECONDS UINT64_C(100000)

struct sampling {
    uint64_t time;
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
            sum.gpu = at_most_100(sum.gpu + seen.record.sm);
            sum.memory = at_most_100(sum.memory + seen.record.bandwidth);
        }
    return sum;
}

/* Drivers keep a sample per period and process; the newest one is all that callers here can see. */
static uint64_t sample_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t microseconds = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return microseconds / SAMPLE_MICROSECONDS * SAMPLE_MICROSECONDS;
}

static bool is_busy(const struct record *record)
{
    return (record->sm | record->bandwidth | record->encoder | record->decoder) != 0;
}

static void sample(const struct call *call, uint64_t last_seen, struct sampling *sampling)
{
    struct seen seen;
    sampling->time = sample_time();
    sampling->count = 0;
    if (sampling->time <= last_seen)
        return;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++) {
        if (!look(call, slot, &seen) || !is_busy(&seen.record))
            continue;
        if (seen.presence == ELSEWHERE)
            continue;
        sampling->samples[sampling->count++] = (struct process_sample){
            .pid = seen.pid,
            .time = sampling->time,
            .sm = seen.record.sm,
            .bandwidth = seen.record.bandwidth,
            .encoder = seen.record.encoder,
            .decoder = seen.record.decoder,
        };
    }
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
        uint32_t share = encodes ? seen.record.encoder : seen.record.decoder;
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
