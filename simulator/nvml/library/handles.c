/* Handles: pointers into a table of ours, so that a foreign or outdated one is recognised. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "library.h"

#define PER_CARD (1 + MAX_INSTANCES)

/* The generation of the card's MIG layout that each handle was given out for. */
static _Atomic uint64_t handles[MAX_CARDS * PER_CARD];

device_t handle_of(const struct call *call, int32_t slot, int32_t instance)
{
    size_t place = (size_t)slot * PER_CARD + (size_t)(instance + 1);
    handles[place] = call->state->cards[slot].mig_generation;
    return (device_t)&handles[place];
}

static int resolve(struct call *call, device_t device)
{
    uintptr_t offset = (uintptr_t)device - (uintptr_t)handles;
    if (offset >= sizeof handles || offset % sizeof handles[0] != 0)
        return INVALID_ARGUMENT;
    size_t place = offset / sizeof handles[0];
    size_t slot = place / PER_CARD;
    if (slot >= call->state->card_count)
        return INVALID_ARGUMENT;
    call->slot = (int32_t)slot;
    call->card = &call->state->cards[slot];
    call->instance = (int32_t)(place % PER_CARD) - 1;
    if (call->instance == NO_INSTANCE)
        return SUCCESS;
    if (call->card->mig_mode != 1 || !call->card->instances[call->instance].used)
        return INVALID_ARGUMENT;
    bool current = handles[place] == call->card->mig_generation;
    return current || call->card->mig_reuse ? SUCCESS : INVALID_ARGUMENT;
}

/* Begin a call on a card or an instance. */
int begin_device(struct call *call, enum function function, device_t device)
{
    int code = attach(call, function);
    if (code == SUCCESS)
        code = resolve(call, device);
    return code != SUCCESS ? code : apply_faults(call, function);
}

/* Begin a call that is only possible on a whole card. */
int begin_card(struct call *call, enum function function, device_t device)
{
    int code = begin_device(call, function, device);
    return code == SUCCESS && call->instance != NO_INSTANCE ? NOT_SUPPORTED : code;
}

/* In MIG mode the whole card hides its memory and processes from callers without privilege. */
bool hidden_by_mig(const struct call *call)
{
    return call->card->mig_mode == 1 && call->instance == NO_INSTANCE;
}

static int count_cards(enum function function, unsigned *count)
{
    struct call call;
    int code = begin(&call, function);
    if (code != SUCCESS)
        return code;
    if (count == NULL)
        return INVALID_ARGUMENT;
    *count = call.state->card_count;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCount(unsigned *count)
{
    return count_cards(FN_nvmlDeviceGetCount, count);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    return count_cards(FN_nvmlDeviceGetCount_v2, count);
}

/* Finish a search: faults of the card that was found count as faults of the search. */
static int give(struct call *call, enum function function, int32_t slot, int missing,
                device_t *device)
{
    call->slot = slot;
    int code = apply_faults(call, function);
    if (code != SUCCESS)
        return code;
    if (device == NULL)
        return INVALID_ARGUMENT;
    if (slot == ANY_CARD)
        return missing;
    *device = handle_of(call, slot, call->instance);
    return SUCCESS;
}

static int by_index(enum function function, unsigned index, device_t *device)
{
    struct call call;
    int code = attach(&call, function);
    if (code != SUCCESS)
        return code;
    int32_t slot = ANY_CARD;
    if (index < call.state->card_count)
        slot = (int32_t)(call.state->order[index] % MAX_CARDS);
    return give(&call, function, slot, INVALID_ARGUMENT, device);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, device_t *device)
{
    return by_index(FN_nvmlDeviceGetHandleByIndex, index, device);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device)
{
    return by_index(FN_nvmlDeviceGetHandleByIndex_v2, index, device);
}

static int32_t find_uuid(struct call *call, const char *uuid)
{
    for (uint32_t slot = 0; slot < call->state->card_count; slot++) {
        const struct card *card = &call->state->cards[slot];
        if (strcmp(card->uuid, uuid) == 0)
            return (int32_t)slot;
        for (int32_t i = 0; card->mig_mode == 1 && i < MAX_INSTANCES; i++)
            if (card->instances[i].used && strcmp(card->instances[i].uuid, uuid) == 0) {
                call->instance = i;
                return (int32_t)slot;
            }
    }
    return ANY_CARD;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device)
{
    struct call call;
    int code = attach(&call, FN_nvmlDeviceGetHandleByUUID);
    if (code != SUCCESS)
        return code;
    if (uuid == NULL)
        return INVALID_ARGUMENT;
    int32_t slot = find_uuid(&call, uuid);
    return give(&call, FN_nvmlDeviceGetHandleByUUID, slot, NOT_FOUND, device);
}

static int by_bus_id(enum function function, const char *bus_id, device_t *device)
{
    struct call call;
    unsigned domain, bus, place;
    int code = attach(&call, function);
    if (code != SUCCESS)
        return code;
    if (bus_id == NULL || sscanf(bus_id, "%x:%x:%x", &domain, &bus, &place) != 3)
        return INVALID_ARGUMENT;
    int32_t slot = ANY_CARD;
    for (uint32_t i = 0; i < call.state->card_count; i++)
        if (domain == 0 && place == 0 && call.state->cards[i].bus == bus)
            slot = (int32_t)i;
    return give(&call, function, slot, NOT_FOUND, device);
}

EXPORT int nvmlDeviceGetHandleByPciBusId(const char *bus_id, device_t *device)
{
    return by_bus_id(FN_nvmlDeviceGetHandleByPciBusId, bus_id, device);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, device_t *device)
{
    return by_bus_id(FN_nvmlDeviceGetHandleByPciBusId_v2, bus_id, device);
}

EXPORT int nvmlDeviceGetIndex(device_t device, unsigned *index)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetIndex, device);
    if (code != SUCCESS)
        return code;
    if (index == NULL)
        return INVALID_ARGUMENT;
    for (uint32_t i = 0; i < call.state->card_count; i++)
        if (call.state->order[i] == (uint32_t)call.slot) {
            *index = i;
            return SUCCESS;
        }
    return NOT_FOUND;
}
