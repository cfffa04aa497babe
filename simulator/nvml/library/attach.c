/* Keep to the state file that the path names, notice when it is replaced, count init and shutdown. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct state *) mapped;
static _Atomic unsigned initialised;
static _Atomic int descriptor = -1;
static _Atomic uint64_t mapped_device, mapped_inode;
static char path[4096];
static bool epoch_known;
static uint32_t loaded_epoch; /* of the driver that this process loaded its library from */

/*
 * Map the file that the path names now. An old mapping stays, because another thread may be reading
 * it; its descriptor is closed, which drops locks that this process holds on the replaced file:
 * nobody asks about those any more.
 */
static int map_file(void)
{
    struct mapping mapping;
    int code = map_state(path, &mapping);
    if (code != SUCCESS)
        return code;
    int old = descriptor;
    descriptor = mapping.descriptor;
    mapped = mapping.state;
    mapped_device = mapping.device;
    mapped_inode = mapping.inode;
    if (old >= 0)
        close(old);
    return SUCCESS;
}

static bool is_current(void)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return true; /* removed: what is mapped goes on, as any open file does */
    return status.st_dev == mapped_device && status.st_ino == mapped_inode;
}

static int refresh(void)
{
    if (mapped != NULL && is_current())
        return SUCCESS;
    pthread_mutex_lock(&lock);
    int code = mapped != NULL && is_current() ? SUCCESS : map_file();
    pthread_mutex_unlock(&lock);
    return mapped != NULL ? SUCCESS : code;
}

static int check_driver(const struct state *state)
{
    if (!epoch_known) {
        loaded_epoch = state->driver_epoch;
        epoch_known = true;
    }
    return state->driver_epoch == loaded_epoch ? SUCCESS : LIB_RM_VERSION_MISMATCH;
}

static void start_call(struct call *call, enum function function)
{
    *call = (struct call){
        .state = mapped, .slot = ANY_CARD, .instance = NO_INSTANCE, .keep = UINT64_MAX, .repeat = 1,
    };
    atomic_fetch_add_explicit(&call->state->calls[function], 1, memory_order_relaxed);
}

int state_descriptor(void)
{
    return descriptor;
}

int attach(struct call *call, enum function function)
{
    if (initialised == 0)
        return UNINITIALIZED;
    int code = refresh();
    if (code != SUCCESS)
        return code;
    start_call(call, function);
    return check_driver(call->state);
}

int begin(struct call *call, enum function function)
{
    int code = attach(call, function);
    return code != SUCCESS ? code : apply_faults(call, function);
}

static int find_path(void)
{
    char named[sizeof path];
    int code = find_state(named, sizeof named);
    if (code != SUCCESS)
        path[0] = '\0';
    else if (strcmp(path, named) != 0) {
        strcpy(path, named);
        mapped_inode = 0; /* another file: map it again */
    }
    return code;
}

static int initialise(enum function function)
{
    struct call call;
    pthread_mutex_lock(&lock);
    int code = initialised > 0 ? SUCCESS : find_path();
    pthread_mutex_unlock(&lock);
    if (code == SUCCESS)
        code = refresh();
    if (code != SUCCESS)
        return code;
    start_call(&call, function);
    code = check_driver(call.state);
    if (code == SUCCESS)
        code = apply_faults(&call, function);
    if (code == SUCCESS)
        initialised++;
    return code;
}

EXPORT int nvmlInit(void)
{
    return initialise(FN_nvmlInit);
}

EXPORT int nvmlInit_v2(void)
{
    return initialise(FN_nvmlInit_v2);
}

EXPORT int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return initialise(FN_nvmlInitWithFlags);
}

/* A surplus shutdown is tolerated, as NVML's documentation promises to old programs. */
EXPORT int nvmlShutdown(void)
{
    struct call call;
    int code = begin(&call, FN_nvmlShutdown);
    if (code == UNINITIALIZED)
        return SUCCESS;
    if (code == SUCCESS || code == LIB_RM_VERSION_MISMATCH) {
        unsigned now = initialised;
        while (now > 0 && !atomic_compare_exchange_weak(&initialised, &now, now - 1))
            ;
    }
    return code;
}
