/* Entries by name, and the texts of codes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../errors.h"
#include "driver.h"

#define CUDA_12 12000
#define CUDA_13 13000

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, name, runtime_name, text) {code, name, text},
    ERRORS(ERROR)
#undef ERROR
};

static int find_error(int code, const char **answer, bool name)
{
    if (answer == NULL)
        return CU_INVALID_VALUE;
    *answer = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            *answer = name ? errors[i].name : errors[i].text;
    return *answer == NULL ? CU_INVALID_VALUE : CU_SUCCESS;
}

EXPORT int cuGetErrorName(int code, const char **name)
{
    return find_error(code, name, true);
}

EXPORT int cuGetErrorString(int code, const char **text)
{
    return find_error(code, text, false);
}

/* Look into this library alone: the program may have others with the same names. */
static void *own_symbol(const char *name)
{
    static _Atomic(void *) library;
    Dl_info info;
    if (library == NULL && dladdr((void *)own_symbol, &info) != 0)
        library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library == NULL ? NULL : dlsym(library, name);
}

/* A name without a version means the newest one that the caller's CUDA knows. */
static void *find_entry(const char *name, int version)
{
    char versioned[128];
    void *found = NULL;
    for (int suffix = version >= CUDA_13 ? 4 : 2; suffix > 1 && found == NULL; suffix -= 2) {
        snprintf(versioned, sizeof versioned, "%s_v%d", name, suffix);
        found = own_symbol(versioned);
    }
    return found == NULL ? own_symbol(name) : found;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags,
                               int *status)
{
    (void)flags;
    if (name == NULL || entry == NULL)
        return CU_INVALID_VALUE;
    bool itself = strcmp(name, "cuGetProcAddress") == 0 && version < CUDA_12;
    *entry = itself ? own_symbol(name) : find_entry(name, version);
    if (status != NULL)
        *status = *entry == NULL; /* 1: there is no such symbol */
    return *entry == NULL ? CU_NOT_FOUND : CU_SUCCESS;
}

EXPORT int cuGetProcAddress(const char *name, void **entry, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}

/* Nobody is called back: the driver has nothing to say but the codes that it returns. */
EXPORT int cuLogsRegisterCallback(const void *function, void *data, const void **handle)
{
    (void)data;
    if (handle != NULL)
        *handle = function;
    return CU_SUCCESS;
}

EXPORT int cuLogsUnregisterCallback(const void *handle)
{
    (void)handle;
    return CU_SUCCESS;
}
