/*
 * Control groups: which one a process is in, what its limits are, and what counts towards them.
 *
 * A group is a folder with a cgroup.procs. The topmost has no cgroup.type, as no kernel gives it one.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

#define VARIABLE "GPUFENCE_SIMULATOR_CGROUP"
#define MOUNTED_AT "/sys/fs/cgroup"
#define CONTROLLER "dmem"

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length < (int)sizeof path && access(path, F_OK) == 0;
}

bool is_group(const char *path)
{
    return has(path, "cgroup.procs");
}

bool is_top_group(const char *path)
{
    return !has(path, "cgroup.type");
}

/* Make a path that of the folder above; false at the top. */
bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* A group has the controller's files where the group above it has turned the controller on. */
bool is_counted_by_kernel(const char *path)
{
    char file[PATH_MAX], line[1024] = "";
    if (is_top_group(path) || strlen(path) >= PATH_SIZE)
        return false;
    strcpy(file, path);
    if (!go_up(file))
        return false;
    strcat(file, "/cgroup.subtree_control");
    FILE *opened = fopen(file, "re");
    if (opened == NULL)
        return false;
    bool read = fgets(line, sizeof line, opened) != NULL;
    fclose(opened);
    for (char *rest = line, *word; read && (word = strsep(&rest, " \n")) != NULL;)
        if (strcmp(word, CONTROLLER) == 0)
            return true;
    return false;
}

static bool read_own(char *path, size_t size)
{
    char line[PATH_SIZE];
    FILE *opened = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (opened != NULL && !found && fgets(line, sizeof line, opened) != NULL)
        found = strncmp(line, "0::/", strlen("0::/")) == 0;
    if (opened != NULL)
        fclose(opened);
    if (!found)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return snprintf(path, size, "%s%s", MOUNTED_AT, line + strlen("0::")) < (int)size;
}

static char own[PATH_SIZE];
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void find_own(void)
{
    char named[PATH_MAX], resolved[PATH_MAX];
    const char *given = getenv(VARIABLE);
    if (given != NULL ? strlen(given) >= sizeof named : !read_own(named, sizeof named))
        return;
    if (given != NULL)
        strcpy(named, given);
    if (realpath(named, resolved) != NULL && strlen(resolved) < sizeof own && is_group(resolved))
        strcpy(own, resolved);
}

/* The folder of the caller's own group; empty where it has none that counts. */
const char *own_group(void)
{
    pthread_once(&own_once, find_own);
    return own;
}

static bool is_within(const char *group, const char *above)
{
    size_t length = strlen(above);
    return strncmp(group, above, length) == 0 && (group[length] == '\0' || group[length] == '/');
}

/* The kernel forgets a group with its folder; misc's map keeps its limit, for the next one. */
static bool is_valid(const struct call *call, const struct limit *limit)
{
    struct stat status;
    if (limit->status != LIMIT_SET || limit->card != call->slot)
        return false;
    if (call->state->memacct == MEMACCT_MISC)
        return true;
    return stat(limit->group, &status) == 0 && status.st_ino == limit->inode;
}

struct limit *find_limit(const struct call *call, const char *group)
{
    for (uint32_t i = 0; i < MAX_LIMITS; i++) {
        struct limit *limit = &call->state->limits[i];
        if (limit->status == LIMIT_SET && strcmp(limit->group, group) == 0 && is_valid(call, limit))
            return limit;
    }
    return NULL;
}

/* The group's own limit, or that of the nearest group above it which has one. */
struct limit *nearest_limit(const struct call *call, const char *group)
{
    char path[PATH_SIZE];
    strcpy(path, group);
    while (*path != '\0') {
        struct limit *limit = find_limit(call, path);
        if (limit != NULL)
            return limit;
        if (!go_up(path))
            break;
    }
    return NULL;
}

/* dmem: what the processes of a group, and of those below it, hold. Managed memory is the host's. */
uint64_t used_by_group(const struct call *call, const char *group)
{
    struct seen seen;
    uint64_t used = 0;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (is_within(call->state->records[slot].group, group) && look(call, slot, &seen))
            used += seen.record.memory;
    return used;
}

/* misc: what was charged to a limit since it was set. */
static uint64_t charged_to(const struct call *call, const struct limit *limit)
{
    struct seen seen;
    uint64_t used = 0;
    uint32_t number = (uint32_t)(limit - call->state->limits) + 1;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++) {
        if (call->state->records[slot].charges[0].limit == 0 || !look(call, slot, &seen))
            continue;
        for (int i = 0; i < MAX_CHARGES; i++)
            if (seen.record.charges[i].limit == number)
                used += seen.record.charges[i].bytes;
    }
    return used;
}

uint64_t used_of_limit(const struct call *call, const struct limit *limit)
{
    if (call->state->memacct == MEMACCT_MISC)
        return charged_to(call, limit);
    return used_by_group(call, limit->group);
}

static uint64_t left(const struct call *call, const struct limit *limit)
{
    if (limit->hard == NO_LIMIT)
        return NO_LIMIT;
    uint64_t used = used_of_limit(call, limit);
    return used < limit->hard ? limit->hard - used : 0;
}

/* How much more a process of a group may take: misc asks one limit, dmem every one above it. */
uint64_t headroom(const struct call *call, const char *group)
{
    if (*group == '\0' || call->state->memacct == MEMACCT_OFF)
        return NO_LIMIT;
    if (call->state->memacct == MEMACCT_MISC) {
        const struct limit *limit = nearest_limit(call, group);
        return limit == NULL ? NO_LIMIT : left(call, limit);
    }
    uint64_t least = NO_LIMIT;
    for (uint32_t i = 0; i < MAX_LIMITS; i++) {
        const struct limit *limit = &call->state->limits[i];
        if (!is_valid(call, limit) || !is_within(group, limit->group))
            continue;
        uint64_t here = left(call, limit);
        least = here < least ? here : least;
    }
    return least;
}

/* The limit that a program of a group is shown: on dmem its own alone, on misc the nearest. */
uint64_t shown_limit(const struct call *call, const char *group, uint64_t *used)
{
    char path[PATH_SIZE];
    *used = 0;
    if (*group == '\0' || call->state->memacct == MEMACCT_OFF || call->card->mig_mode == 1)
        return NO_LIMIT;
    strcpy(path, group);
    const struct limit *limit;
    if (call->state->memacct == MEMACCT_MISC)
        limit = nearest_limit(call, path);
    else {
        while (!is_counted_by_kernel(path) && go_up(path))
            ;
        limit = find_limit(call, path);
    }
    if (limit == NULL || limit->hard == NO_LIMIT)
        return NO_LIMIT;
    *used = used_of_limit(call, limit);
    return limit->hard;
}

/* Note on misc to which limit an allocation counts; the oldest of too many is forgotten. */
void charge_group(const struct call *call, struct record *record, uint64_t bytes)
{
    if (call->state->memacct != MEMACCT_MISC || *record->group == '\0')
        return;
    const struct limit *limit = nearest_limit(call, record->group);
    if (limit == NULL)
        return;
    uint32_t number = (uint32_t)(limit - call->state->limits) + 1;
    int last = MAX_CHARGES - 1;
    while (last >= 0 && record->charges[last].limit == 0)
        last--;
    if (last >= 0 && record->charges[last].limit == number) {
        record->charges[last].bytes += bytes;
        return;
    }
    if (last == MAX_CHARGES - 1) {
        memmove(record->charges, record->charges + 1, (MAX_CHARGES - 1) * sizeof(struct charge));
        last--;
    }
    record->charges[last + 1] = (struct charge){.bytes = bytes, .limit = number};
}

/* What was taken last is given back first. */
void discharge_group(struct record *record, uint64_t bytes)
{
    for (int i = MAX_CHARGES - 1; i >= 0 && bytes > 0; i--) {
        struct charge *charge = &record->charges[i];
        if (charge->limit == 0)
            continue;
        uint64_t part = bytes < charge->bytes ? bytes : charge->bytes;
        charge->bytes -= part;
        bytes -= part;
        if (charge->bytes == 0)
            charge->limit = 0;
    }
}
