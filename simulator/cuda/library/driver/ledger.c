/*
 * What this process holds on each card: a record in the state file of simulator/nvml.
 *
 * Our lock on the record's byte tells everybody that we live. The kernel drops it with the process,
 * and with it all that the process held. The descriptor is never closed: that would drop it, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../nvml/library/library.h"
#include "driver.h"

#define MPS_PIPES "CUDA_MPS_PIPE_DIRECTORY" /* of a client: its daemon is taken to be there */

static struct mapping mapping = {.descriptor = -1};
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

/* records.c asks for it. */
int state_descriptor(void)
{
    return mapping.descriptor;
}

int ledger_open(void)
{
    char path[4096];
    if (mapping.state != NULL)
        return CU_SUCCESS;
    if (find_state(path, sizeof path) != SUCCESS || map_state(path, &mapping) != SUCCESS)
        return CU_NO_DEVICE;
    return CU_SUCCESS;
}

const struct state *ledger_state(void)
{
    return mapping.state;
}

static int lock_byte(int command, short type, int64_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int code;
    while ((code = fcntl(mapping.descriptor, command, &lock)) != 0 && errno == EINTR)
        ;
    return code;
}

/* A POSIX lock belongs to the process, so threads need one of their own. */
static void begin_allocation(void)
{
    pthread_mutex_lock(&threads);
    lock_byte(F_SETLKW, F_WRLCK, ALLOCATION_LOCK);
}

static void end_allocation(void)
{
    lock_byte(F_SETLK, F_UNLCK, ALLOCATION_LOCK);
    pthread_mutex_unlock(&threads);
}

static struct call place_of(const struct device *device)
{
    return (struct call){
        .state = mapping.state,
        .card = &mapping.state->cards[device->slot],
        .slot = device->slot,
        .instance = device->place,
    };
}

static uint64_t usable(const struct device *device)
{
    if (device->instance != NULL)
        return device->instance->total - device->instance->reserved;
    return device->card->total - device->card->reserved;
}

static uint64_t free_on(const struct device *device)
{
    struct call call = place_of(device);
    uint64_t taken = used_by_processes(&call) + (device->instance == NULL ? device->card->extra : 0);
    return taken < usable(device) ? usable(device) - taken : 0;
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* What a program is told: of the card or, where its control group is limited, of that limit. */
void ledger_room(const struct device *device, uint64_t *free_bytes, uint64_t *total)
{
    uint64_t used;
    struct call call = place_of(device);
    uint64_t limit = shown_limit(&call, own_group(), &used);
    *total = least(limit, usable(device));
    *free_bytes = least(limit == NO_LIMIT ? limit : limit - least(used, limit), free_on(device));
}

/* The device's size, of which no document says whether a limit changes it. */
uint64_t ledger_total(const struct device *device)
{
    uint64_t room, total;
    if (!mapping.state->totals_capped)
        return usable(device);
    ledger_room(device, &room, &total);
    return total;
}

/* What is free, and what the control group may still have of it. */
static uint64_t allowed_on(const struct device *device)
{
    struct call call = place_of(device);
    if (device->instance != NULL)
        return free_on(device);
    return least(free_on(device), headroom(&call, own_group()));
}

static bool is_taken(uint32_t slot)
{
    struct seen seen;
    const struct record *record = &mapping.state->records[slot];
    struct call call = {.state = mapping.state, .slot = record->card, .instance = NO_INSTANCE};
    return look(&call, slot, &seen);
}

static void write_record(struct record *record, const struct device *device)
{
    record->sequence |= 1;
    record->memory = record->managed = record->peak = 0;
    record->since = now_microseconds();
    record->accounted = mapping.state->cards[device->slot].accounting;
    record->pid = (uint32_t)getpid();
    record->started = own_start();
    record->name_space = own_namespace();
    record->card = device->slot;
    record->instance = device->place;
    record->lists = getenv(MPS_PIPES) ? LIST_COMPUTE | LIST_MPS : LIST_COMPUTE;
    record->kind = KIND_HELD;
    record->level_count = 0;
    memset(record->charges, 0, sizeof record->charges);
    strcpy(record->group, own_group());
    record->status = RECORD_USED;
    record->sequence++;
}

/* Find the record of this process on the card, or make it one. */
static struct record *own_record(struct device *device)
{
    struct state *state = mapping.state;
    for (uint32_t slot = 0; device->record < 0 && slot < MAX_RECORDS; slot++) {
        if (slot < state->record_count && is_taken(slot))
            continue;
        keep_account(state, &state->records[slot]);
        state->records[slot].status = RECORD_FREE;
        if (lock_byte(F_SETLK, F_WRLCK, RECORD_LOCKS + slot) != 0)
            continue;
        write_record(&state->records[slot], device);
        if (slot >= state->record_count)
            state->record_count = slot + 1;
        device->record = (int32_t)slot;
    }
    return device->record < 0 ? NULL : &state->records[device->record];
}

static void leave_if_empty(struct device *device)
{
    struct record *record = &mapping.state->records[device->record];
    if (record->memory + record->managed > 0)
        return;
    keep_account(mapping.state, record);
    record->status = RECORD_FREE;
    lock_byte(F_SETLK, F_UNLCK, RECORD_LOCKS + device->record);
    device->record = -1;
}

/* Hold so much more, if there is room for all of it. */
bool ledger_take(struct device *device, uint64_t bytes)
{
    begin_allocation();
    bool fits = bytes <= allowed_on(device);
    struct record *record = fits ? own_record(device) : NULL;
    if (record != NULL) {
        struct call call = place_of(device);
        charge_group(&call, record, bytes);
        record->memory += bytes;
        if (record->memory > record->peak)
            record->peak = record->memory;
    }
    end_allocation();
    return record != NULL;
}

void ledger_give(struct device *device, uint64_t bytes)
{
    begin_allocation();
    if (device->record >= 0) {
        mapping.state->records[device->record].memory -= bytes;
        discharge_group(&mapping.state->records[device->record], bytes);
        leave_if_empty(device);
    }
    end_allocation();
}

/* Managed memory may be larger than the card: what fits is on it. Returns how much that is. */
uint64_t ledger_take_managed(struct device *device, uint64_t bytes)
{
    begin_allocation();
    uint64_t room = free_on(device);
    uint64_t taken = bytes < room ? bytes : room;
    struct record *record = own_record(device);
    if (record == NULL)
        taken = 0;
    else
        record->managed += taken;
    end_allocation();
    return taken;
}

void ledger_give_managed(struct device *device, uint64_t bytes)
{
    begin_allocation();
    if (device->record >= 0) {
        mapping.state->records[device->record].managed -= bytes;
        leave_if_empty(device);
    }
    end_allocation();
}
