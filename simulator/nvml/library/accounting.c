/* Accounting: the most memory that each process ever held, known until long after its end. */
#define _GNU_SOURCE
#include <unistd.h>

#include "library.h"

/* In MIG mode it is off for good. */
static int begin_accounting(struct call *call, enum function function, device_t device)
{
    int code = begin_card(call, function, device);
    return code == SUCCESS && !call->card->accounting ? NOT_SUPPORTED : code;
}

/* One process as the caller sees it, from a record or from the ring of those that have ended. */
struct entry {
    struct account account;
    bool running;
};

static bool entry_of_record(const struct call *call, uint32_t slot, struct entry *entry)
{
    struct seen seen = {.presence = ELSEWHERE};
    bool there = look(call, slot, &seen);
    if ((!there && seen.presence != GONE) || seen.presence == ELSEWHERE || !seen.record.accounted)
        return false;
    *entry = (struct entry){
        .account = {
            .peak = seen.record.peak,
            .since = seen.record.since,
            .started = seen.record.started,
            .pid = seen.pid,
        },
        .running = there,
    };
    return true;
}

/* The newest first. */
static bool entry_of_ring(const struct call *call, uint64_t age, struct entry *entry)
{
    const struct state *state = call->state;
    if (age >= state->account_count || age >= MAX_ACCOUNTS)
        return false;
    *entry = (struct entry){state->accounts[(state->account_count - 1 - age) % MAX_ACCOUNTS], false};
    if (entry->account.card != call->slot || entry->account.name_space != own_namespace())
        entry->account.pid = 0;
    return true;
}

/* The latest process of that PID; what it held before it let go of everything once counts, too. */
static bool find(const struct call *call, uint32_t pid, struct entry *found)
{
    struct entry entry;
    bool known = false;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (entry_of_record(call, slot, &entry) && entry.account.pid == pid &&
            (!known || entry.running)) {
            *found = entry;
            known = true;
        }
    for (uint64_t age = 0; entry_of_ring(call, age, &entry); age++) {
        if (entry.account.pid != pid)
            continue;
        if (!known)
            *found = entry;
        else if (entry.account.started == found->account.started &&
                 entry.account.peak > found->account.peak)
            found->account.peak = entry.account.peak;
        known = true;
    }
    return known;
}

static uint32_t add_pid(uint32_t *pids, uint32_t count, uint32_t pid)
{
    for (uint32_t i = 0; i < count; i++)
        if (pids[i] == pid)
            return count;
    if (pid == 0 || count == MAX_ACCOUNTS)
        return count;
    pids[count] = pid;
    return count + 1;
}

static uint32_t collect(const struct call *call, uint32_t *pids)
{
    struct entry entry;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (entry_of_record(call, slot, &entry))
            count = add_pid(pids, count, entry.account.pid);
    for (uint64_t age = 0; entry_of_ring(call, age, &entry); age++)
        count = add_pid(pids, count, entry.account.pid);
    return count;
}

/* Forget the processes that have ended, and those that live as well where the mode is turned off. */
static void forget(const struct call *call, bool all)
{
    struct entry entry;
    for (uint32_t slot = 0; slot < call->state->record_count && slot < MAX_RECORDS; slot++)
        if (entry_of_record(call, slot, &entry) && (all || !entry.running))
            call->state->records[slot].accounted = 0;
    for (uint32_t i = 0; i < MAX_ACCOUNTS; i++)
        if (call->state->accounts[i].card == call->slot)
            call->state->accounts[i] = (struct account){.card = ANY_CARD};
}

EXPORT int nvmlDeviceGetAccountingMode(device_t device, unsigned *mode)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetAccountingMode, device);
    if (code != SUCCESS)
        return code;
    if (mode == NULL)
        return INVALID_ARGUMENT;
    *mode = call.card->accounting;
    return SUCCESS;
}

EXPORT int nvmlDeviceSetAccountingMode(device_t device, unsigned mode)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceSetAccountingMode, device);
    if (code != SUCCESS)
        return code;
    if (mode > 1)
        return INVALID_ARGUMENT;
    if (call.card->mig_mode == 1)
        return NOT_SUPPORTED;
    if (geteuid() != 0)
        return NO_PERMISSION;
    call.card->accounting = mode;
    if (!mode)
        forget(&call, true);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetAccountingStats(device_t device, unsigned pid,
                                        struct accounting_stats *stats)
{
    struct call call;
    struct entry entry;
    int code = begin_accounting(&call, FN_nvmlDeviceGetAccountingStats, device);
    if (code != SUCCESS)
        return code;
    if (stats == NULL)
        return INVALID_ARGUMENT;
    if (pid == 0 || !find(&call, pid, &entry))
        return NOT_FOUND;
    *stats = (struct accounting_stats){
        .gpu = NOT_SUPPORTED_VALUE,
        .bandwidth = NOT_SUPPORTED_VALUE,
        .most_memory = call.not_available ? VALUE_NOT_AVAILABLE : entry.account.peak,
        .since = entry.account.since,
        .running = entry.running,
    };
    return SUCCESS;
}

EXPORT int nvmlDeviceGetAccountingPids(device_t device, unsigned *count, unsigned *pids)
{
    struct call call;
    uint32_t known[MAX_ACCOUNTS];
    int code = begin_accounting(&call, FN_nvmlDeviceGetAccountingPids, device);
    if (code != SUCCESS)
        return code;
    if (count == NULL || (pids == NULL && *count != 0))
        return INVALID_ARGUMENT;
    uint32_t found = collect(&call, known);
    bool fits = *count >= found;
    *count = found;
    if (!fits)
        return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < found; i++)
        pids[i] = known[i];
    return SUCCESS;
}

EXPORT int nvmlDeviceGetAccountingBufferSize(device_t device, unsigned *size)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetAccountingBufferSize, device);
    if (code != SUCCESS)
        return code;
    if (size == NULL)
        return INVALID_ARGUMENT;
    *size = MAX_ACCOUNTS;
    return SUCCESS;
}

EXPORT int nvmlDeviceClearAccountingPids(device_t device)
{
    struct call call;
    int code = begin_accounting(&call, FN_nvmlDeviceClearAccountingPids, device);
    if (code != SUCCESS)
        return code;
    if (geteuid() != 0)
        return NO_PERMISSION;
    forget(&call, false);
    return SUCCESS;
}
