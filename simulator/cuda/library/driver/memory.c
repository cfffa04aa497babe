/* Memory that programs allocate: on a card, managed, or of the host. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "driver.h"

#define SMALL (UINT64_C(1) << 20) /* smaller allocations share blocks */
#define BLOCK (UINT64_C(2) << 20)

/* How much more, or less, of a card it takes to have so many bytes in small allocations. */
static uint64_t blocks_of(uint64_t small)
{
    return round_up(small, BLOCK);
}

bool charge(struct device *device, uint64_t size)
{
    if (size > UINT64_MAX - BLOCK)
        return false;
    if (size >= SMALL)
        return ledger_take(device, round_up(size, BLOCK));
    uint64_t more = blocks_of(device->small + size) - blocks_of(device->small);
    if (more > 0 && !ledger_take(device, more))
        return false;
    device->small += size;
    return true;
}

void discharge(struct device *device, uint64_t size)
{
    if (size >= SMALL) {
        ledger_give(device, round_up(size, BLOCK));
        return;
    }
    uint64_t less = blocks_of(device->small) - blocks_of(device->small - size);
    device->small -= size;
    if (less > 0)
        ledger_give(device, less);
}

static void release(struct allocation *allocation)
{
    if (allocation->origin == FROM_POOL) {
        free_pooled(allocation);
        return;
    }
    struct device *device = device_at(context_ordinal(allocation->context));
    if (allocation->origin == FROM_CARD)
        discharge(device, allocation->charged);
    if (allocation->origin == FROM_MANAGED && allocation->charged > 0)
        ledger_give_managed(device, allocation->charged);
    drop_allocation(allocation);
}

void free_allocations_of(const struct context *context)
{
    struct allocation *next;
    for (struct allocation *one = newest_allocation(); one != NULL; one = next) {
        next = one->next;
        if (one->context == context && one->origin != FROM_RESERVATION)
            release(one);
    }
}

static int allocate(enum origin origin, uint64_t *address, size_t size)
{
    struct context *context;
    int code = current_context(&context);
    if (code != CU_SUCCESS)
        return code;
    if (address == NULL || size == 0)
        return CU_INVALID_VALUE;
    struct device *device = device_at(context_ordinal(context));
    if (origin == FROM_CARD && !charge(device, size))
        return CU_OUT_OF_MEMORY;
    struct allocation *made = add_allocation(origin, size, size >= SMALL ? BLOCK : 0);
    if (made == NULL) {
        if (origin == FROM_CARD)
            discharge(device, size);
        return CU_OUT_OF_MEMORY;
    }
    made->context = context;
    made->charged = origin == FROM_CARD ? size : 0;
    if (origin == FROM_MANAGED)
        made->charged = ledger_take_managed(device, round_up(size, BLOCK));
    *address = made->start;
    return CU_SUCCESS;
}

static int allocate_locked(enum origin origin, uint64_t *address, size_t size)
{
    lock_tables();
    int code = allocate(origin, address, size);
    unlock_tables();
    return code;
}

EXPORT int cuMemAlloc_v2(address_t *address, size_t size)
{
    return allocate_locked(FROM_CARD, address, size);
}

EXPORT int cuMemAllocPitch_v2(address_t *address, size_t *pitch, size_t width, size_t height,
                              unsigned element)
{
    (void)element;
    if (pitch == NULL || height == 0 || width > UINT64_MAX / 2 / height)
        return CU_INVALID_VALUE;
    *pitch = round_up(width, 512);
    return allocate_locked(FROM_CARD, address, *pitch * height);
}

EXPORT int cuMemAllocManaged(address_t *address, size_t size, unsigned flags)
{
    (void)flags;
    return allocate_locked(FROM_MANAGED, address, size);
}

EXPORT int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    return allocate_locked(FROM_HOST, (uint64_t *)address, size);
}

EXPORT int cuMemAllocHost_v2(void **address, size_t size)
{
    return cuMemHostAlloc(address, size, 0);
}

/* Free what starts just there and came from one of two sources. */
static int free_at(uint64_t address, enum origin one, enum origin other)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (address == 0)
        return CU_SUCCESS;
    lock_tables();
    struct allocation *found = find_allocation(address);
    bool pooled = found != NULL && found->origin == FROM_POOL && one == FROM_CARD;
    bool valid = found != NULL && found->start == address &&
                 (pooled || found->origin == one || found->origin == other);
    if (valid)
        release(found);
    unlock_tables();
    return valid ? CU_SUCCESS : CU_INVALID_VALUE;
}

EXPORT int cuMemFree_v2(address_t address)
{
    return free_at(address, FROM_CARD, FROM_MANAGED);
}

EXPORT int cuMemFreeHost(void *address)
{
    return free_at((uint64_t)address, FROM_HOST, FROM_HOST);
}

EXPORT int cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    struct context *context;
    (void)flags;
    int code = current_context(&context);
    if (code != CU_SUCCESS)
        return code;
    if (address == NULL || size == 0)
        return CU_INVALID_VALUE;
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL)
        return CU_OUT_OF_MEMORY;
    *allocation = (struct allocation){
        .start = (uint64_t)address, .size = size, .origin = FROM_CALLER, .context = context,
    };
    lock_tables();
    bool noted = note_allocation(allocation);
    unlock_tables();
    if (!noted)
        free(allocation);
    return noted ? CU_SUCCESS : 712; /* is registered already */
}

EXPORT int cuMemHostUnregister(void *address)
{
    int code = free_at((uint64_t)address, FROM_CALLER, FROM_CALLER);
    return code == CU_INVALID_VALUE ? CU_HOST_MEMORY_NOT_REGISTERED : code;
}

/* Host memory that the card sees has the same address there. */
EXPORT int cuMemHostGetDevicePointer_v2(address_t *address, void *host, unsigned flags)
{
    (void)flags;
    if (address == NULL || host == NULL)
        return CU_INVALID_VALUE;
    *address = (uint64_t)host;
    return CU_SUCCESS;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    struct context *context;
    uint64_t room, total;
    int code = current_context(&context);
    if (code != CU_SUCCESS)
        return code;
    ledger_room(device_at(context_ordinal(context)), &room, &total);
    if (free_bytes != NULL)
        *free_bytes = room;
    if (total_bytes != NULL)
        *total_bytes = total;
    return CU_SUCCESS;
}
