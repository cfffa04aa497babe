/* Devices: how many there are, which, and what they can do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"

#define DRIVER_VERSION 13000 /* as NVML says, too */
#define NVIDIA_SUBSYSTEM 0x10de
#define KILO 1000
#define MOST_ATTRIBUTE 160

static struct device devices[MAX_DEVICES];
static int count;
static _Atomic bool initialised, forked;
static pthread_once_t watch_forks = PTHREAD_ONCE_INIT;

/* A child has none of its parent's locks: what the driver knows is the parent's. */
static void note_fork(void)
{
    if (initialised)
        forked = true;
}

static void watch(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

EXPORT int cuInit(unsigned flags)
{
    if (flags != 0)
        return CU_INVALID_VALUE;
    if (forked)
        return CU_NOT_INITIALIZED;
    pthread_once(&watch_forks, watch);
    lock_tables();
    int code = CU_SUCCESS;
    if (!initialised) {
        code = ledger_open();
        count = code == CU_SUCCESS ? find_devices(ledger_state(), devices) : 0;
        if (count == 0)
            code = CU_NO_DEVICE;
        initialised = code == CU_SUCCESS;
    }
    unlock_tables();
    return code;
}

int ready(void)
{
    return initialised && !forked ? CU_SUCCESS : CU_NOT_INITIALIZED;
}

int device_count(void)
{
    return count;
}

struct device *device_at(int ordinal)
{
    return ordinal >= 0 && ordinal < count ? &devices[ordinal] : NULL;
}

EXPORT int cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CU_INVALID_VALUE;
    *version = DRIVER_VERSION;
    return CU_SUCCESS;
}

EXPORT int cuDeviceGetCount(int *number)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (number == NULL)
        return CU_INVALID_VALUE;
    *number = count;
    return CU_SUCCESS;
}

/* Check a call about one device. */
static int begin(const void *target, int ordinal)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (target == NULL)
        return CU_INVALID_VALUE;
    return device_at(ordinal) == NULL ? CU_INVALID_DEVICE : CU_SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    int code = begin(device, ordinal);
    if (code == CU_SUCCESS)
        *device = ordinal;
    return code;
}

EXPORT int cuDeviceGetName(char *name, int length, int ordinal)
{
    int code = begin(name, ordinal);
    if (code != CU_SUCCESS)
        return code;
    if (length <= 0)
        return CU_INVALID_VALUE;
    const struct device *device = &devices[ordinal];
    if (device->instance == NULL)
        snprintf(name, (size_t)length, "%s", device->card->name);
    else
        snprintf(name, (size_t)length, "%s MIG %s", device->card->name, device->instance->profile);
    return CU_SUCCESS;
}

/* The UUID's text behind its "GPU-" or "MIG-", as 16 bytes. */
static void read_uuid(const char *text, struct uuid *uuid)
{
    unsigned byte;
    memset(uuid, 0, sizeof *uuid);
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        text += strspn(text, "-GPUMI");
        if (sscanf(text, "%2x", &byte) != 1)
            return;
        uuid->bytes[i] = (uint8_t)byte;
        text += 2;
    }
}

EXPORT int cuDeviceGetUuid(struct uuid *uuid, int ordinal)
{
    int code = begin(uuid, ordinal);
    if (code == CU_SUCCESS)
        read_uuid(devices[ordinal].card->uuid, uuid);
    return code;
}

EXPORT int cuDeviceGetUuid_v2(struct uuid *uuid, int ordinal)
{
    int code = begin(uuid, ordinal);
    if (code != CU_SUCCESS)
        return code;
    const struct device *device = &devices[ordinal];
    read_uuid(device->instance != NULL ? device->instance->uuid : device->card->uuid, uuid);
    return CU_SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int ordinal)
{
    int code = begin(bytes, ordinal);
    if (code == CU_SUCCESS)
        *bytes = ledger_total(&devices[ordinal]);
    return code;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int length, int ordinal)
{
    int code = begin(text, ordinal);
    if (code != CU_SUCCESS)
        return code;
    if (length < 13)
        return CU_INVALID_VALUE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", devices[ordinal].card->bus & 0xff);
    return CU_SUCCESS;
}

EXPORT int cuDeviceGetByPCIBusId(int *ordinal, const char *text)
{
    unsigned domain = 0, bus = 0, place = 0;
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (ordinal == NULL || text == NULL)
        return CU_INVALID_VALUE;
    if (sscanf(text, "%x:%x:%x", &domain, &bus, &place) < 2)
        return CU_INVALID_VALUE;
    for (int i = 0; i < count; i++)
        if (devices[i].card->bus == bus) {
            *ordinal = i;
            return CU_SUCCESS;
        }
    return CU_INVALID_DEVICE;
}

struct family {
    uint32_t major, minor;
    int multiprocessors, threads, blocks, shared_kib, l2_mib, bus_width;
};

/* Of the products in models.py; the last one stands for what is not listed. */
static const struct family families[] = {
    {7, 0, 80, 2048, 32, 96, 6, 4096},   {7, 5, 40, 1024, 16, 64, 4, 256},
    {8, 6, 80, 1536, 16, 100, 6, 384},   {8, 9, 58, 1536, 24, 100, 48, 192},
    {9, 0, 132, 2048, 32, 228, 50, 5120}, {8, 0, 108, 2048, 32, 164, 40, 5120},
};

static const struct family *family_of(const struct card *card)
{
    size_t last = sizeof families / sizeof families[0] - 1;
    for (size_t i = 0; i < last; i++)
        if (families[i].major == card->capability_major && families[i].minor == card->capability_minor)
            return &families[i];
    return &families[last];
}

/* What is the same on every card that is simulated. */
static const struct {
    int attribute, value;
} common[] = {
    {1, 1024},        {2, 1024},   {3, 1024},  {4, 64},    {5, 2147483647}, {6, 65535},
    {7, 65535},       {8, 49152},  {9, 65536}, {10, 32},   {11, 2147483647}, {12, 65536},
    {14, 512},        {15, 1},     {19, 1},    {21, 131072}, {22, 131072},  {23, 65536},
    {24, 16384},      {25, 16384}, {26, 16384}, {30, 512}, {31, 1},         {32, 1},
    {40, 3},          {41, 1},     {51, 32},   {78, 1},    {79, 1},         {80, 1},
    {82, 65536},      {83, 1},     {87, 2},    {89, 1},    {90, 1},         {91, 1},
    {95, 1},          {96, 1},     {99, 1},    {102, 1},   {103, 1},        {111, 1024},
    {115, 1},         {119, 1},    {125, 0},   {130, 0},   {131, -1},       {134, -1},
};

int device_number(const struct device *device, int attribute)
{
    const struct card *card = device->card;
    const struct family *family = family_of(card);
    switch (attribute) {
    case 13: return (int)card->sm_clock * KILO;
    case ATTRIBUTE_MULTIPROCESSORS:
        return device->instance ? (int)device->instance->multiprocessors : family->multiprocessors;
    case ATTRIBUTE_PCI_BUS: return (int)(card->bus & 0xff);
    case 36: return (int)card->memory_clock * KILO;
    case 37: return family->bus_width;
    case 38: return family->l2_mib << 20;
    case 39: return family->threads;
    case ATTRIBUTE_MAJOR: return (int)card->capability_major;
    case ATTRIBUTE_MINOR: return (int)card->capability_minor;
    case 81: return family->shared_kib << 10;
    case 97: return (family->shared_kib - 1) << 10;
    case 106: return family->blocks;
    case 120: return card->capability_major >= 9; /* clusters, from Hopper on */
    case 139: return (int)card->pci_device;
    case 140: return NVIDIA_SUBSYSTEM;
    }
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (common[i].attribute == attribute)
            return common[i].value;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int ordinal)
{
    int code = begin(value, ordinal);
    if (code != CU_SUCCESS)
        return code;
    if (attribute < 1 || attribute > MOST_ATTRIBUTE)
        return CU_INVALID_VALUE;
    *value = device_number(&devices[ordinal], attribute);
    return CU_SUCCESS;
}

EXPORT int cuDeviceComputeCapability(int *major, int *minor, int ordinal)
{
    int code = begin(major, ordinal);
    if (code != CU_SUCCESS || minor == NULL)
        return code != CU_SUCCESS ? code : CU_INVALID_VALUE;
    *major = (int)devices[ordinal].card->capability_major;
    *minor = (int)devices[ordinal].card->capability_minor;
    return CU_SUCCESS;
}

/* Cards of ours share nothing: no peer access, and the weakest atomics. */
EXPORT int cuDeviceCanAccessPeer(int *possible, int ordinal, int peer)
{
    int code = begin(possible, ordinal);
    if (code == CU_SUCCESS && device_at(peer) == NULL)
        code = CU_INVALID_DEVICE;
    if (code == CU_SUCCESS)
        *possible = 0;
    return code;
}

EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int ordinal, int peer)
{
    (void)attribute;
    return cuDeviceCanAccessPeer(value, ordinal, peer);
}
