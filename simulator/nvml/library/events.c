/* Event sets: register cards, wait for what is posted to the state's ring. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "library.h"

#define MAX_SETS 64
#define POLL_NANOSECONDS 2000000
#define SUPPORTED_TYPES UINT64_C(0x1f)

struct set {
    bool used;
    uint64_t cursor; /* the next event to look at */
    uint64_t types[MAX_CARDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct set sets[MAX_SETS];

static struct set *find(const void *handle)
{
    for (size_t i = 0; i < MAX_SETS; i++)
        if (handle == &sets[i] && sets[i].used)
            return &sets[i];
    return NULL;
}

EXPORT int nvmlEventSetCreate(void **handle)
{
    struct call call;
    int code = begin(&call, FN_nvmlEventSetCreate);
    if (code != SUCCESS)
        return code;
    if (handle == NULL)
        return INVALID_ARGUMENT;
    code = MEMORY;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MAX_SETS && code != SUCCESS; i++)
        if (!sets[i].used) {
            sets[i] = (struct set){.used = true, .cursor = call.state->next_event};
            *handle = &sets[i];
            code = SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORT int nvmlEventSetFree(void *handle)
{
    struct call call;
    int code = begin(&call, FN_nvmlEventSetFree);
    if (code != SUCCESS)
        return code;
    pthread_mutex_lock(&lock);
    struct set *set = find(handle);
    if (set != NULL)
        set->used = false;
    pthread_mutex_unlock(&lock);
    return set != NULL ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetSupportedEventTypes(device_t device, unsigned long long *types)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetSupportedEventTypes, device);
    if (code != SUCCESS)
        return code;
    if (types == NULL)
        return INVALID_ARGUMENT;
    *types = SUPPORTED_TYPES;
    return SUCCESS;
}

/* Instances have no events of their own. */
EXPORT int nvmlDeviceRegisterEvents(device_t device, unsigned long long types, void *handle)
{
    struct call call;
    int code = begin_device(&call, FN_nvmlDeviceRegisterEvents, device);
    if (code != SUCCESS)
        return code;
    if (call.instance != NO_INSTANCE)
        return INVALID_ARGUMENT;
    if ((types & ~SUPPORTED_TYPES) != 0)
        return NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    struct set *set = find(handle);
    if (set != NULL)
        set->types[call.slot] |= types;
    pthread_mutex_unlock(&lock);
    return set != NULL ? SUCCESS : INVALID_ARGUMENT;
}

static bool concerns_set(const struct set *set, const struct event *event)
{
    if (event->card < 0 || event->card >= MAX_CARDS)
        return false;
    return (set->types[event->card] & event->type) != 0;
}

/* Take the next event for this set, oldest first; those that the ring has lost are skipped. */
static bool take(const struct call *call, struct set *set, struct event_data *data)
{
    uint64_t next = call->state->next_event;
    if (next < set->cursor || next - set->cursor > MAX_EVENTS)
        set->cursor = next > MAX_EVENTS ? next - MAX_EVENTS : 0;
    while (set->cursor < next) {
        struct event event = call->state->events[set->cursor++ % MAX_EVENTS];
        if (!concerns_set(set, &event))
            continue;
        *data = (struct event_data){
            .device = (void *)(uintptr_t)handle_of(call, event.card, NO_INSTANCE),
            .type = event.type,
            .data = event.data,
            .gpu_instance = event.gpu_instance,
            .compute_instance = event.compute_instance,
        };
        return true;
    }
    return false;
}

static uint64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int wait_for_event(enum function function, void *handle, struct event_data *data,
                          unsigned timeout)
{
    struct call call;
    int code = begin(&call, function);
    if (code != SUCCESS)
        return code;
    if (data == NULL)
        return INVALID_ARGUMENT;
    struct timespec pause = {0, POLL_NANOSECONDS};
    uint64_t end = milliseconds() + timeout;
    for (;;) {
        pthread_mutex_lock(&lock);
        struct set *set = find(handle);
        bool taken = set != NULL && take(&call, set, data);
        pthread_mutex_unlock(&lock);
        if (set == NULL)
            return INVALID_ARGUMENT;
        if (taken)
            return SUCCESS;
        if (milliseconds() >= end)
            return TIMEOUT;
        nanosleep(&pause, NULL);
    }
}

EXPORT int nvmlEventSetWait(void *handle, struct event_data *data, unsigned timeout)
{
    return wait_for_event(FN_nvmlEventSetWait, handle, data, timeout);
}

EXPORT int nvmlEventSetWait_v2(void *handle, struct event_data *data, unsigned timeout)
{
    return wait_for_event(FN_nvmlEventSetWait_v2, handle, data, timeout);
}
