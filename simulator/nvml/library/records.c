/* Who lives, under which PID, and how much memory that makes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

uint64_t own_namespace(void)
{
    static _Atomic uint64_t known;
    struct stat status;
    if (known == 0 && stat("/proc/self/ns/pid", &status) == 0)
        known = status.st_ino;
    return known;
}

uint64_t now_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Copy a record while others may write it; an unfinished or free one is not there. */
static bool copy_record(struct record *source, struct record *copy)
{
    for (int attempt = 0; attempt < 3; attempt++) {
        uint64_t before = atomic_load_explicit(&source->sequence, memory_order_acquire);
        if (before % 2 != 0)
            continue;
        memcpy(copy, source, sizeof *copy);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&source->sequence, memory_order_relaxed) == before)
            return copy->status == RECORD_USED;
    }
    return false;
}

/* Field 22 of /proc/self/stat, counted behind the last parenthesis: the name may hold anything. */
uint64_t own_start(void)
{
    char text[1024];
    unsigned long long start = 0;
    int opened = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (opened < 0)
        return 0;
    ssize_t length = read(opened, text, sizeof text - 1);
    close(opened);
    text[length > 0 ? length : 0] = '\0';
    const char *field = strrchr(text, ')');
    for (int i = 0; field != NULL && i < 20; i++)
        field = strchr(field + 1, ' ');
    if (field == NULL || sscanf(field, " %llu", &start) != 1)
        return 0;
    return start;
}

/* The kernel never shows a process its own locks, so a client's own record is told by identity. */
static bool is_own(const struct record *record)
{
    static _Atomic uint64_t known_pid, known_start;
    uint64_t pid = (uint64_t)getpid();
    if (record->pid != pid || record->name_space != own_namespace())
        return false;
    if (known_pid != pid) {
        known_start = own_start();
        known_pid = pid;
    }
    return record->started == known_start;
}

static enum presence ask_lock(const struct record *record, uint32_t slot, uint32_t *pid)
{
    struct flock held = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RECORD_LOCKS + slot, .l_len = 1,
    };
    if (fcntl(state_descriptor(), F_GETLK, &held) != 0)
        return GONE;
    if (held.l_type == F_UNLCK) {
        *pid = record->pid;
        return is_own(record) ? HERE : GONE;
    }
    *pid = held.l_pid > 0 ? (uint32_t)held.l_pid : 0;
    return *pid != 0 ? HERE : ELSEWHERE;
}

/* A bare number means something only in the namespace it was written in. */
static enum presence ask_number(const struct record *record, uint32_t *pid)
{
    if (record->name_space != own_namespace())
        return ELSEWHERE;
    *pid = record->pid;
    return kill((pid_t)record->pid, 0) == 0 || errno == EPERM ? HERE : GONE;
}

bool look(const struct call *call, uint32_t slot, struct seen *seen)
{
    struct record *record = &call->state->records[slot];
    seen->pid = 0;
    if (record->status != RECORD_USED || !concerns(call, record))
        return false;
    if (!copy_record(record, &seen->record) || !concerns(call, &seen->record))
        return false;
    switch ((enum record_kind)seen->record.kind) {
    case KIND_HELD:
        seen->presence = ask_lock(&seen->record, slot, &seen->pid);
        if (seen->presence == GONE && call->linger)
            seen->presence = HERE;
        break;
    case KIND_CHECKED:
        seen->presence = ask_number(&seen->record, &seen->pid);
        break;
    case KIND_KEPT:
        seen->pid = seen->record.pid;
        seen->presence = HERE;
        break;
    }
    return seen->presence != GONE;
}

bool concerns(const struct call *call, const struct record *record)
{
    if (record->card != call->slot)
        return false;
    return call->instance == NO_INSTANCE || record->instance == call->instance;
}

/* Call it under the allocation lock, before a record of an ended process is used again. */
void keep_account(struct state *state, struct record *record)
{
    if (record->status != RECORD_USED || !record->accounted)
        return;
    state->accounts[state->account_count % MAX_ACCOUNTS] = (struct account){
        .peak = record->peak,
        .since = record->since,
        .started = record->started,
        .name_space = record->name_space,
        .pid = record->pid,
        .card = record->card,
    };
    state->account_count++;
    record->accounted = 0;
}

uint64_t used_by_processes(const struct call *call)
{
    struct seen seen;
    uint64_t used = 0;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (look(call, slot, &seen))
            used += seen.record.memory + seen.record.managed;
    return used;
}
