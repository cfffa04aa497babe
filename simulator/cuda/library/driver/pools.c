/*
 * Stream-ordered memory: pools, of which each device has a default one.
 *
 * A pool holds what is in use and, up to its threshold, what was: NVML sees both. Streams of ours
 * are never behind, so freed memory is reusable at once, and a pool is never in pieces.
 */
#define _GNU_SOURCE
#include <string.h>

#include "driver.h"

#define MAX_POOLS 256
#define BLOCK (UINT64_C(2) << 20)

struct pool {
    bool alive;
    int ordinal;
    uint64_t used, used_high, reserved, reserved_high, threshold;
    uint64_t settings[POOL_INTERNAL + 1]; /* how memory may be reused: kept, without effect */
};

/* The default pools first, in the order of the devices. */
static struct pool pools[MAX_POOLS];
static struct pool *chosen[MAX_DEVICES];

static struct pool *default_pool(int ordinal)
{
    struct pool *pool = &pools[ordinal];
    if (!pool->alive)
        *pool = (struct pool){.alive = true, .ordinal = ordinal, .settings = {0, 1, 1, 1}};
    return pool;
}

static struct pool *as_pool(const void *handle)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)pools;
    if (offset >= sizeof pools || offset % sizeof pools[0] != 0)
        return NULL;
    struct pool *pool = &pools[offset / sizeof pools[0]];
    return pool->alive ? pool : NULL;
}

static uint64_t at_least(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* Hold just so much, or fail and change nothing. */
static bool reserve(struct pool *pool, uint64_t wanted)
{
    struct device *device = device_at(pool->ordinal);
    if (wanted > pool->reserved && !ledger_take(device, wanted - pool->reserved))
        return false;
    if (wanted < pool->reserved)
        ledger_give(device, pool->reserved - wanted);
    pool->reserved = wanted;
    pool->reserved_high = at_least(pool->reserved_high, wanted);
    return true;
}

static uint64_t blocks(uint64_t bytes)
{
    return round_up(bytes, BLOCK);
}

static int take(struct pool *pool, uint64_t *address, size_t size, struct context *context)
{
    if (size == 0 || size > UINT64_MAX / 4)
        return CU_INVALID_VALUE;
    uint64_t needed = blocks(pool->used + size);
    if (needed > pool->reserved && !reserve(pool, needed))
        return CU_OUT_OF_MEMORY;
    struct allocation *made = add_allocation(FROM_POOL, size, BLOCK);
    if (made == NULL)
        return CU_OUT_OF_MEMORY;
    made->pool = pool;
    made->context = context;
    made->charged = size;
    pool->used += size;
    pool->used_high = at_least(pool->used_high, pool->used);
    *address = made->start;
    return CU_SUCCESS;
}

static void trim(struct pool *pool, uint64_t keep)
{
    uint64_t least = at_least(blocks(pool->used), keep);
    if (least < pool->reserved)
        reserve(pool, least);
}

void free_pooled(struct allocation *allocation)
{
    struct pool *pool = allocation->pool;
    pool->used -= allocation->charged;
    drop_allocation(allocation);
    trim(pool, pool->threshold);
}

/* With a device's primary context goes what its pools hold. */
void free_pools_of(const struct context *context)
{
    int ordinal = context_ordinal(context);
    for (size_t i = 0; i < MAX_POOLS; i++)
        if (pools[i].alive && pools[i].ordinal == ordinal) {
            free_allocations_of_pool(&pools[i]);
            pools[i].used = 0;
            reserve(&pools[i], 0);
        }
}

static int allocate_from(struct pool *pool, address_t *address, size_t size)
{
    struct context *context;
    int code = current_context(&context);
    if (code == CU_SUCCESS && address == NULL)
        code = CU_INVALID_VALUE;
    if (code != CU_SUCCESS)
        return code;
    lock_tables();
    if (pool == NULL) {
        int ordinal = context_ordinal(context);
        pool = chosen[ordinal] != NULL ? chosen[ordinal] : default_pool(ordinal);
    }
    code = take(pool, address, size, context);
    unlock_tables();
    return code;
}

EXPORT int cuMemAllocAsync(address_t *address, size_t size, const void *stream)
{
    (void)stream;
    return allocate_from(NULL, address, size);
}

EXPORT int cuMemAllocFromPoolAsync(address_t *address, size_t size, const void *handle,
                                   const void *stream)
{
    (void)stream;
    struct pool *pool = as_pool(handle);
    return pool == NULL ? CU_INVALID_VALUE : allocate_from(pool, address, size);
}

int cuMemFree_v2(address_t address);

EXPORT int cuMemFreeAsync(address_t address, const void *stream)
{
    (void)stream;
    return cuMemFree_v2(address);
}

EXPORT int cuMemPoolCreate(struct pool **handle, const struct pool_properties *wanted)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (handle == NULL || wanted == NULL)
        return CU_INVALID_VALUE;
    if (wanted->location.type != LOCATION_DEVICE)
        return CU_NOT_SUPPORTED;
    if (device_at(wanted->location.id) == NULL)
        return CU_INVALID_DEVICE;
    int code = CU_OUT_OF_MEMORY;
    lock_tables();
    for (size_t i = MAX_DEVICES; i < MAX_POOLS && code != CU_SUCCESS; i++)
        if (!pools[i].alive) {
            pools[i] = (struct pool){
                .alive = true, .ordinal = wanted->location.id, .settings = {0, 1, 1, 1},
            };
            *handle = &pools[i];
            code = CU_SUCCESS;
        }
    unlock_tables();
    return code;
}

EXPORT int cuMemPoolDestroy(struct pool *handle)
{
    struct pool *pool = as_pool(handle);
    if (pool == NULL || pool < pools + MAX_DEVICES)
        return CU_INVALID_VALUE; /* default pools stay */
    lock_tables();
    free_allocations_of_pool(pool);
    pool->used = 0;
    reserve(pool, 0);
    pool->alive = false;
    for (size_t i = 0; i < MAX_DEVICES; i++)
        if (chosen[i] == pool)
            chosen[i] = NULL;
    unlock_tables();
    return CU_SUCCESS;
}

static int give_pool(struct pool **handle, int ordinal, bool only_default)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (handle == NULL)
        return CU_INVALID_VALUE;
    if (device_at(ordinal) == NULL)
        return CU_INVALID_DEVICE;
    lock_tables();
    bool other = !only_default && chosen[ordinal] != NULL;
    *handle = other ? chosen[ordinal] : default_pool(ordinal);
    unlock_tables();
    return CU_SUCCESS;
}

EXPORT int cuDeviceGetDefaultMemPool(struct pool **handle, int ordinal)
{
    return give_pool(handle, ordinal, true);
}

EXPORT int cuDeviceGetMemPool(struct pool **handle, int ordinal)
{
    return give_pool(handle, ordinal, false);
}

EXPORT int cuDeviceSetMemPool(int ordinal, const void *handle)
{
    struct pool *pool = as_pool(handle);
    if (device_at(ordinal) == NULL)
        return CU_INVALID_DEVICE;
    if (pool == NULL || pool->ordinal != ordinal)
        return CU_INVALID_VALUE;
    chosen[ordinal] = pool;
    return CU_SUCCESS;
}

/* The first three are 32 bits wide, the others 64. */
EXPORT int cuMemPoolGetAttribute(const void *handle, int attribute, void *value)
{
    const struct pool *pool = as_pool(handle);
    if (pool == NULL || value == NULL)
        return CU_INVALID_VALUE;
    switch (attribute) {
    case POOL_FOLLOW_EVENTS:
    case POOL_OPPORTUNISTIC:
    case POOL_INTERNAL: *(uint32_t *)value = (uint32_t)pool->settings[attribute]; break;
    case POOL_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
    case POOL_RESERVED: *(uint64_t *)value = pool->reserved; break;
    case POOL_RESERVED_HIGH: *(uint64_t *)value = pool->reserved_high; break;
    case POOL_USED: *(uint64_t *)value = pool->used; break;
    case POOL_USED_HIGH: *(uint64_t *)value = pool->used_high; break;
    default: return CU_INVALID_VALUE;
    }
    return CU_SUCCESS;
}

EXPORT int cuMemPoolSetAttribute(const void *handle, int attribute, const void *value)
{
    struct pool *pool = as_pool(handle);
    if (pool == NULL || value == NULL)
        return CU_INVALID_VALUE;
    switch (attribute) {
    case POOL_FOLLOW_EVENTS:
    case POOL_OPPORTUNISTIC:
    case POOL_INTERNAL: pool->settings[attribute] = *(const uint32_t *)value; break;
    case POOL_THRESHOLD: pool->threshold = *(const uint64_t *)value; break;
    case POOL_RESERVED_HIGH: pool->reserved_high = pool->reserved; break;
    case POOL_USED_HIGH: pool->used_high = pool->used; break;
    default: return CU_INVALID_VALUE;
    }
    return CU_SUCCESS;
}

EXPORT int cuMemPoolTrimTo(const void *handle, size_t keep)
{
    struct pool *pool = as_pool(handle);
    if (pool == NULL)
        return CU_INVALID_VALUE;
    lock_tables();
    trim(pool, keep);
    unlock_tables();
    return CU_SUCCESS;
}

EXPORT int cuMemPoolSetAccess(const void *handle, const struct access *access, size_t count)
{
    (void)count;
    return as_pool(handle) == NULL || access == NULL ? CU_INVALID_VALUE : CU_SUCCESS;
}

EXPORT int cuMemPoolGetAccess(int *flags, const void *handle, const struct location *location)
{
    const struct pool *pool = as_pool(handle);
    if (pool == NULL || flags == NULL || location == NULL)
        return CU_INVALID_VALUE;
    *flags = location->id == pool->ordinal ? 3 : 0;
    return CU_SUCCESS;
}
