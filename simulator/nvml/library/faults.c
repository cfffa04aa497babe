/* One mechanism for everything that can go wrong: look the active faults up and let them act. */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

static bool concerns_call(const struct fault *fault, const struct call *call, enum function function)
{
    if (!fault->active || function < fault->first || function > fault->last)
        return false;
    return fault->card == ANY_CARD || fault->card == call->slot;
}

/* Count this call; say whether the fault's turn has come and is not yet over. */
static bool is_due(struct fault *fault)
{
    uint64_t seen = atomic_fetch_add(&fault->seen, 1);
    return seen >= fault->after && (fault->times == 0 || seen < fault->after + fault->times);
}

static void pause_for(int64_t microseconds)
{
    struct timespec rest = {microseconds / 1000000, microseconds % 1000000 * 1000};
    while (nanosleep(&rest, &rest) != 0)
        ;
}

static void hang(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (;;)
        pause();
}

static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

/* Do what the fault does; returns a code other than SUCCESS where the call ends there. */
static int act(const struct fault *fault, struct call *call)
{
    uint64_t count = (uint64_t)fault->argument;
    switch ((enum action)fault->action) {
    case ACTION_RETURN:
        return (int)fault->argument;
    case ACTION_DELAY:
        pause_for(fault->argument);
        break;
    case ACTION_HANG:
        hang();
        break;
    case ACTION_CRASH:
        crash();
        break;
    case ACTION_NOT_AVAILABLE:
        call->not_available = true;
        break;
    case ACTION_ZERO:
        call->zero = true;
        break;
    case ACTION_DUPLICATE:
        call->repeat = count;
        break;
    case ACTION_PAD:
        call->pad += count;
        break;
    case ACTION_KEEP:
        call->keep = count;
        break;
    case ACTION_GARBLE:
        call->garble = true;
        break;
    case ACTION_SHIFT:
        call->shift = (uint32_t)count;
        break;
    case ACTION_DIVIDE:
        call->divide = count;
        break;
    case ACTION_LINGER:
        call->linger = true;
        break;
    }
    return SUCCESS;
}

int apply_faults(struct call *call, enum function function)
{
    uint32_t count = call->state->fault_count;
    for (uint32_t i = 0; i < count && i < MAX_FAULTS; i++) {
        struct fault *fault = &call->state->faults[i];
        if (!concerns_call(fault, call, function) || !is_due(fault))
            continue;
        int code = act(fault, call);
        if (code != SUCCESS)
            return code;
    }
    return SUCCESS;
}
