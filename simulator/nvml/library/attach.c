/* Find the state file, map it, notice when it is replaced, count init and shutdown. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

#define STATE_VARIABLE "GPUFENCE_SIMULATOR_STATE"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct state *) mapped;
static _Atomic unsigned initialised;
static _Atomic int descriptor = -1;
static _Atomic uint64_t mapped_device, mapped_inode;
static char path[4096];
static bool epoch_known;
static uint32_t loaded_epoch; /* of the driver that this process loaded its library from */

static int refuse(const char *why, int code)
{
    fprintf(stderr, "gpufence simulator: %s=%s: %s; remedy: python -m simulator nvml create\n",
            STATE_VARIABLE, path, why);
    return code;
}

static int refuse_open(int error)
{
    int code = error == EACCES || error == EPERM ? NO_PERMISSION : DRIVER_NOT_LOADED;
    return refuse(strerror(error), code);
}

static int check(const struct state *state)
{
    if (state->magic != STATE_MAGIC)
        return refuse("is not a state file", DRIVER_NOT_LOADED);
    if (state->version != STATE_VERSION || state->size != sizeof *state)
        return refuse("was written for another version of the library", LIB_RM_VERSION_MISMATCH);
    return SUCCESS;
}

/*
 * Map the file that the path names now. An old mapping stays, because another thread may be reading
 * it; its descriptor is closed, which drops locks that this process holds on the replaced file:
 * nobody asks about those any more.
 */
static int map_file(void)
{
    struct stat status;
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0)
        return refuse_open(errno);
    int code = SUCCESS;
    struct state *state = MAP_FAILED;
    if (fstat(opened, &status) != 0 || (size_t)status.st_size < sizeof *state)
        code = refuse("is too short for a state file", DRIVER_NOT_LOADED);
    if (code == SUCCESS) {
        state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        code = state == MAP_FAILED ? refuse_open(errno) : check(state);
    }
    if (code != SUCCESS) {
        if (state != MAP_FAILED)
            munmap(state, sizeof *state);
        close(opened);
        return code;
    }
    int old = descriptor;
    descriptor = opened;
    mapped = state;
    mapped_device = status.st_dev;
    mapped_inode = status.st_ino;
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

uint64_t own_namespace(void)
{
    static _Atomic uint64_t known;
    struct stat status;
    if (known == 0 && stat("/proc/self/ns/pid", &status) == 0)
        known = status.st_ino;
    return known;
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
    const char *named = getenv(STATE_VARIABLE);
    if (named == NULL || *named == '\0' || strlen(named) >= sizeof path) {
        path[0] = '\0';
        return refuse("must name a state file", DRIVER_NOT_LOADED);
    }
    if (strcmp(path, named) != 0) {
        strcpy(path, named);
        mapped_inode = 0; /* another file: map it again */
    }
    return SUCCESS;
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
