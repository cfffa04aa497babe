/* Temperature, power and clocks: plausible, and moving with the load. */
#define _GNU_SOURCE
#include "library.h"

#define WARMTH_AT_FULL_LOAD 40
#define IDLE_SM_CLOCK 300
#define IDLE_MEMORY_CLOCK 405
#define PERFORMANCE_BUSY 0
#define PERFORMANCE_IDLE 8

static uint32_t between(uint32_t idle, uint32_t full, uint32_t percent)
{
    return idle + (uint32_t)((uint64_t)(full - idle) * percent / 100);
}

static uint32_t degrees(const struct call *call)
{
    uint32_t idle = call->card->temperature;
    return between(idle, idle + WARMTH_AT_FULL_LOAD, utilization(call).gpu);
}

static int give(int code, uint32_t value, unsigned *target)
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

EXPORT int nvmlDeviceGetTemperature(device_t device, unsigned sensor, unsigned *target)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetTemperature, device);
    if (code == SUCCESS && sensor != 0)
        return INVALID_ARGUMENT;
    return give(code, code == SUCCESS ? degrees(&call) : 0, target);
}

EXPORT int nvmlDeviceGetTemperatureV(device_t device, struct temperature *temperature)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetTemperatureV, device);
    if (code != SUCCESS)
        return code;
    if (temperature == NULL || temperature->sensor != 0)
        return INVALID_ARGUMENT;
    if (temperature->version != VERSIONED(struct temperature, 1))
        return ARGUMENT_VERSION_MISMATCH;
    temperature->degrees = (int32_t)degrees(&call);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetFanSpeed(device_t device, unsigned *percent)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetFanSpeed, device);
    return give(code, code == SUCCESS ? call.card->fan : 0, percent);
}

EXPORT int nvmlDeviceGetPerformanceState(device_t device, unsigned *state)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetPerformanceState, device);
    bool busy = code == SUCCESS && used_by_processes(&call) > 0;
    return give(code, busy ? PERFORMANCE_BUSY : PERFORMANCE_IDLE, state);
}

EXPORT int nvmlDeviceGetPowerUsage(device_t device, unsigned *milliwatts)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetPowerUsage, device);
    if (code != SUCCESS)
        return code;
    const struct card *card = call.card;
    uint32_t percent = utilization(&call).gpu;
    return give(code, between(card->idle_milliwatts, card->limit_milliwatts, percent), milliwatts);
}

static int give_limit(enum function function, device_t device, unsigned *milliwatts)
{
    struct call call;
    int code = begin_card(&call, function, device);
    return give(code, code == SUCCESS ? call.card->limit_milliwatts : 0, milliwatts);
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(device_t device, unsigned *milliwatts)
{
    return give_limit(FN_nvmlDeviceGetEnforcedPowerLimit, device, milliwatts);
}

EXPORT int nvmlDeviceGetPowerManagementLimit(device_t device, unsigned *milliwatts)
{
    return give_limit(FN_nvmlDeviceGetPowerManagementLimit, device, milliwatts);
}

enum clock { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO };

static uint32_t fastest(const struct card *card, unsigned clock)
{
    return clock == CLOCK_MEMORY ? card->memory_clock : card->sm_clock;
}

EXPORT int nvmlDeviceGetMaxClockInfo(device_t device, unsigned clock, unsigned *megahertz)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetMaxClockInfo, device);
    if (code == SUCCESS && clock > CLOCK_VIDEO)
        return INVALID_ARGUMENT;
    return give(code, code == SUCCESS ? fastest(call.card, clock) : 0, megahertz);
}

EXPORT int nvmlDeviceGetClockInfo(device_t device, unsigned clock, unsigned *megahertz)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetClockInfo, device);
    if (code != SUCCESS)
        return code;
    if (clock > CLOCK_VIDEO)
        return INVALID_ARGUMENT;
    uint32_t idle = clock == CLOCK_MEMORY ? IDLE_MEMORY_CLOCK : IDLE_SM_CLOCK;
    uint32_t full = fastest(call.card, clock);
    return give(code, used_by_processes(&call) > 0 ? full : idle, megahertz);
}
