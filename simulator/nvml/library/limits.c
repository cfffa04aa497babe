/* Limits of a control group's memory on a card, which drivers can set and read since r615. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

#if MEMORY_LIMITS
#define ROOT_VARIABLE "GPUFENCE_SIMULATOR_ROOT"

/* The variable says who counts as root, for those who are not, and for those who are. */
static bool is_root(void)
{
    const char *said = getenv(ROOT_VARIABLE);
    return said != NULL && *said != '\0' ? strcmp(said, "1") == 0 : geteuid() == 0;
}

/* Begin a call about a group: all that is the same for setting and reading. */
static int begin_group(struct call *call, enum function function, device_t device,
                       const char *const *name_space, char path[PATH_SIZE])
{
    char resolved[PATH_MAX];
    int code = begin_device(call, function, device);
    if (code != SUCCESS)
        return code;
    if (name_space == NULL || *name_space == NULL)
        return INVALID_ARGUMENT;
    if (call->card->mig_mode == 1 || call->card->unified || call->state->memacct == MEMACCT_OFF)
        return NOT_SUPPORTED;
    if (realpath(*name_space, resolved) == NULL)
        return NOT_FOUND;
    if (!is_group(resolved) || strlen(resolved) >= PATH_SIZE)
        return INVALID_ARGUMENT;
    strcpy(path, resolved);
    return SUCCESS;
}

static bool is_charged(const struct call *call, const struct limit *limit)
{
    struct call of_card = {.state = call->state, .slot = limit->card, .instance = NO_INSTANCE};
    return used_of_limit(&of_card, limit) > 0;
}

/* A free entry or, if there is none, that of a group which is gone and holds nothing. */
static struct limit *claim(const struct call *call)
{
    struct stat status;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < MAX_LIMITS; i++) {
            struct limit *limit = &call->state->limits[i];
            uint32_t expected = pass == 0 ? LIMIT_FREE : LIMIT_SET;
            if (limit->status != expected)
                continue;
            if (pass == 1 && (stat(limit->group, &status) == 0 || is_charged(call, limit)))
                continue;
            if (atomic_compare_exchange_strong(&limit->status, &expected, LIMIT_CLAIMED))
                return limit;
        }
    return NULL;
}

static int write_limit(const struct call *call, const char *group, uint64_t soft, uint64_t hard)
{
    struct stat status;
    struct limit *limit = find_limit(call, group);
    if (limit != NULL) {
        limit->soft = soft;
        limit->hard = hard;
        return SUCCESS;
    }
    if (stat(group, &status) != 0)
        return NOT_FOUND;
    limit = claim(call);
    if (limit == NULL)
        return MEMORY;
    limit->soft = soft;
    limit->hard = hard;
    limit->inode = status.st_ino;
    limit->card = call->slot;
    strcpy(limit->group, group);
    limit->status = LIMIT_SET;
    return SUCCESS;
}

/* The driver keeps what dmem's groups above have reserved equal to the sum of those below. */
static void reserve_above(const struct call *call, const char *group, uint64_t before, uint64_t soft)
{
    char path[PATH_SIZE];
    strcpy(path, group);
    while (before != soft && go_up(path) && is_counted_by_kernel(path)) {
        const struct limit *above = find_limit(call, path);
        uint64_t reserved = above == NULL ? 0 : above->soft;
        write_limit(call, path, reserved - before + soft, above == NULL ? NO_LIMIT : above->hard);
    }
}

static int set(const struct call *call, const char *group, uint64_t soft, uint64_t hard)
{
    const struct limit *known = find_limit(call, group);
    uint64_t before = known == NULL ? 0 : known->soft;
    if (call->state->memacct == MEMACCT_DMEM) {
        if (!is_counted_by_kernel(group))
            return NOT_FOUND;
        int code = write_limit(call, group, soft, hard);
        if (code == SUCCESS)
            reserve_above(call, group, before, soft);
        return code;
    }
    if (is_top_group(group))
        return NOT_SUPPORTED;
    if (known != NULL && used_of_limit(call, known) > hard)
        return INVALID_ARGUMENT;
    return write_limit(call, group, soft, hard);
}

static bool is_too_large(const struct call *call, uint64_t limit)
{
    return limit > call->card->total && limit != NO_LIMIT;
}

EXPORT int nvmlDeviceSetMemoryLimits_v1(device_t device, const struct limits_to_set *wanted)
{
    struct call call;
    char group[PATH_SIZE];
    const char *const *name_space = wanted == NULL ? NULL : &wanted->name_space;
    int code = begin_group(&call, FN_nvmlDeviceSetMemoryLimits_v1, device, name_space, group);
    if (code != SUCCESS)
        return code;
    if (!is_root())
        return NO_PERMISSION;
    if (is_too_large(&call, wanted->soft) || is_too_large(&call, wanted->hard))
        return INVALID_ARGUMENT;
    if (wanted->soft > wanted->hard)
        return INVALID_ARGUMENT;
    return set(&call, group, wanted->soft, wanted->hard);
}

EXPORT int nvmlDeviceGetMemoryLimits_v1(device_t device, struct limits_to_get *answer)
{
    struct call call;
    char group[PATH_SIZE];
    const char *const *name_space = answer == NULL ? NULL : &answer->name_space;
    int code = begin_group(&call, FN_nvmlDeviceGetMemoryLimits_v1, device, name_space, group);
    if (code != SUCCESS)
        return code;
    const struct limit *limit;
    if (call.state->memacct == MEMACCT_MISC) {
        limit = nearest_limit(&call, group);
        if (limit == NULL)
            return NOT_SUPPORTED;
        answer->used = used_of_limit(&call, limit);
    } else {
        while (!is_counted_by_kernel(group))
            if (!go_up(group) || !is_group(group))
                return NOT_FOUND;
        limit = find_limit(&call, group);
        answer->used = used_by_group(&call, group);
    }
    answer->soft = limit == NULL ? 0 : limit->soft;
    answer->hard = limit == NULL ? NO_LIMIT : limit->hard;
    return SUCCESS;
}
#endif
