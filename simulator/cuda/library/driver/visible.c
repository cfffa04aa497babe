/* Which cards CUDA_VISIBLE_DEVICES leaves to this process, and in which order. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static bool fill(const struct state *state, uint32_t index, struct device *device)
{
    uint32_t slot = state->order[index] % MAX_CARDS;
    const struct card *card = &state->cards[slot];
    *device = (struct device){
        .card = card, .slot = (int32_t)slot, .place = NO_INSTANCE, .record = -1,
    };
    if (card->mig_mode != 1)
        return true;
    for (int32_t place = 0; place < MAX_INSTANCES; place++)
        if (card->instances[place].used) {
            device->instance = &card->instances[place];
            device->place = place;
            return true;
        }
    return false; /* in MIG mode, but not cut: nothing to compute on */
}

/* A UUID may be shortened as long as it stays unambiguous, as CUDA allows. */
static bool fill_by_uuid(const struct state *state, const char *uuid, struct device *device)
{
    size_t length = strlen(uuid);
    int found = 0;
    for (uint32_t index = 0; index < state->card_count; index++) {
        struct device candidate;
        bool usable = fill(state, index, &candidate);
        if (usable && strncmp(candidate.card->uuid, uuid, length) == 0) {
            *device = candidate;
            found++;
        }
        for (int32_t place = 0; usable && candidate.instance != NULL && place < MAX_INSTANCES; place++) {
            const struct instance *instance = &candidate.card->instances[place];
            if (!instance->used || strncmp(instance->uuid, uuid, length) != 0)
                continue;
            *device = candidate;
            device->instance = instance;
            device->place = place;
            found++;
        }
    }
    return found == 1;
}

static bool fill_by_name(const struct state *state, const char *name, struct device *device)
{
    char *end;
    if (strncmp(name, "GPU-", 4) == 0 || strncmp(name, "MIG-", 4) == 0)
        return fill_by_uuid(state, name, device);
    long index = strtol(name, &end, 10);
    if (end == name || *end != '\0' || index < 0 || index >= (long)state->card_count)
        return false;
    return fill(state, (uint32_t)index, device);
}

static bool is_among(const struct device *one, const struct device *devices, int count)
{
    for (int i = 0; i < count; i++)
        if (devices[i].slot == one->slot && devices[i].place == one->place)
            return true;
    return false;
}

/* The list ends before the first name that means no card; one named twice leaves none at all. */
static int find_named(const struct state *state, char *list, struct device *devices)
{
    int count = 0;
    char *rest = list, *name;
    while ((name = strsep(&rest, ",")) != NULL) {
        struct device device;
        name += strspn(name, " ");
        name[strcspn(name, " ")] = '\0';
        if (!fill_by_name(state, name, &device))
            break;
        if (is_among(&device, devices, count) || count == MAX_DEVICES)
            return 0;
        devices[count++] = device;
    }
    return count;
}

int find_devices(const struct state *state, struct device devices[MAX_DEVICES])
{
    int count = 0;
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    if (named != NULL) {
        char *list = strdup(named);
        count = list == NULL ? 0 : find_named(state, list, devices);
        free(list);
        return count;
    }
    for (uint32_t index = 0; index < state->card_count; index++)
        if (fill(state, index, &devices[count]))
            count++;
    return count;
}
