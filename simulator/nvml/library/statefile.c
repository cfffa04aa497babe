/* Find the state file by its variable and map it, or say why that cannot be. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

#define STATE_VARIABLE "GPUFENCE_SIMULATOR_STATE"

static int refuse(const char *path, const char *why, int code)
{
    fprintf(stderr, "gpufence simulator: %s=%s: %s; remedy: python -m simulator nvml create\n",
            STATE_VARIABLE, path, why);
    return code;
}

static int refuse_open(const char *path, int error)
{
    int code = error == EACCES || error == EPERM ? NO_PERMISSION : DRIVER_NOT_LOADED;
    return refuse(path, strerror(error), code);
}

static int check(const char *path, const struct state *state)
{
    if (state->magic != STATE_MAGIC)
        return refuse(path, "is not a state file", DRIVER_NOT_LOADED);
    if (state->version != STATE_VERSION || state->size != sizeof *state)
        return refuse(path, "was written for another version of the library",
                      LIB_RM_VERSION_MISMATCH);
    return SUCCESS;
}

int find_state(char *path, size_t size)
{
    const char *named = getenv(STATE_VARIABLE);
    if (named == NULL || *named == '\0' || strlen(named) >= size)
        return refuse("", "must name a state file", DRIVER_NOT_LOADED);
    strcpy(path, named);
    return SUCCESS;
}

int map_state(const char *path, struct mapping *mapping)
{
    struct stat status;
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0)
        return refuse_open(path, errno);
    int code = SUCCESS;
    struct state *state = MAP_FAILED;
    if (fstat(opened, &status) != 0 || (size_t)status.st_size < sizeof *state)
        code = refuse(path, "is too short for a state file", DRIVER_NOT_LOADED);
    if (code == SUCCESS) {
        state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        code = state == MAP_FAILED ? refuse_open(path, errno) : check(path, state);
    }
    if (code != SUCCESS) {
        if (state != MAP_FAILED)
            munmap(state, sizeof *state);
        close(opened);
        return code;
    }
    *mapping = (struct mapping){
        .state = state, .descriptor = opened, .device = status.st_dev, .inode = status.st_ino,
    };
    return SUCCESS;
}
