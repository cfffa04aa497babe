/*
 * Virtual memory: addresses are reserved, memory is made, and the two are mapped together.
 *
 * Memory counts from its creation until it is released and mapped nowhere, as on hardware.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "driver.h"

#define GRANULARITY (UINT64_C(2) << 20)

struct mapped {
    uint64_t start, size;
    struct object *memory;
    struct mapped *next;
};

static struct mapped *mappings;

EXPORT int cuMemGetAllocationGranularity(size_t *size, const struct allocation_properties *wanted,
                                         int option)
{
    (void)option;
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (size == NULL || wanted == NULL)
        return CU_INVALID_VALUE;
    *size = GRANULARITY;
    return CU_SUCCESS;
}

EXPORT int cuMemAddressReserve(address_t *address, size_t size, size_t alignment, address_t wish,
                               uint64_t flags)
{
    (void)wish;
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (address == NULL || size == 0 || size % GRANULARITY != 0 || flags != 0)
        return CU_INVALID_VALUE;
    lock_tables();
    uint64_t unit = alignment > GRANULARITY ? alignment : GRANULARITY;
    struct allocation *made = add_allocation(FROM_RESERVATION, size, unit);
    unlock_tables();
    if (made == NULL)
        return CU_OUT_OF_MEMORY;
    *address = made->start;
    return CU_SUCCESS;
}

static bool overlaps(const struct mapped *mapped, uint64_t start, uint64_t size)
{
    return mapped->start < start + size && start < mapped->start + mapped->size;
}

static bool is_mapped(uint64_t start, uint64_t size)
{
    for (const struct mapped *one = mappings; one != NULL; one = one->next)
        if (overlaps(one, start, size))
            return true;
    return false;
}

EXPORT int cuMemAddressFree(address_t address, size_t size)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    int code = CU_INVALID_VALUE;
    struct allocation *found = find_allocation(address);
    if (found != NULL && found->origin == FROM_RESERVATION && found->start == address &&
        found->size == size && !is_mapped(address, size)) {
        drop_allocation(found);
        code = CU_SUCCESS;
    }
    unlock_tables();
    return code;
}

EXPORT int cuMemCreate(struct object **handle, size_t size,
                       const struct allocation_properties *wanted, uint64_t flags)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (handle == NULL || wanted == NULL || size == 0 || size % GRANULARITY != 0 || flags != 0)
        return CU_INVALID_VALUE;
    if (wanted->location.type != LOCATION_DEVICE)
        return CU_NOT_SUPPORTED; /* memory of the host */
    struct device *device = device_at(wanted->location.id);
    if (device == NULL)
        return CU_INVALID_DEVICE;
    lock_tables();
    struct object *memory = new_object(OBJECT_MEMORY);
    int code = CU_OUT_OF_MEMORY;
    if (memory != NULL && ledger_take(device, size)) {
        memory->value = size;
        memory->number = wanted->location.id;
        memory->users = 1;
        *handle = memory;
        code = CU_SUCCESS;
    } else if (memory != NULL)
        drop_object(memory);
    unlock_tables();
    return code;
}

static void leave_memory(struct object *memory)
{
    if (--memory->users > 0)
        return;
    ledger_give(device_at(memory->number), memory->value);
    drop_object(memory);
}

EXPORT int cuMemRelease(struct object *handle)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    struct object *memory = as_object(handle, OBJECT_MEMORY);
    if (memory != NULL)
        leave_memory(memory);
    unlock_tables();
    return memory == NULL ? CU_INVALID_VALUE : CU_SUCCESS;
}

static int map_at(uint64_t start, uint64_t size, struct object *memory)
{
    const struct allocation *around = find_allocation(start);
    if (around == NULL || around->origin != FROM_RESERVATION ||
        start + size > around->start + around->size || is_mapped(start, size))
        return CU_INVALID_VALUE;
    struct mapped *made = malloc(sizeof *made);
    if (made == NULL)
        return CU_OUT_OF_MEMORY;
    *made = (struct mapped){.start = start, .size = size, .memory = memory, .next = mappings};
    mappings = made;
    memory->users++;
    return CU_SUCCESS;
}

EXPORT int cuMemMap(address_t address, size_t size, size_t offset, struct object *handle,
                    uint64_t flags)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    struct object *memory = as_object(handle, OBJECT_MEMORY);
    int code = CU_INVALID_VALUE;
    if (memory != NULL && flags == 0 && size > 0 && size % GRANULARITY == 0 &&
        offset <= memory->value && size <= memory->value - offset)
        code = map_at(address, size, memory);
    unlock_tables();
    return code;
}

/* Unmaps whole mappings only, as the driver does. */
EXPORT int cuMemUnmap(address_t address, size_t size)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    int code = CU_INVALID_VALUE;
    lock_tables();
    for (struct mapped **link = &mappings; *link != NULL;) {
        struct mapped *one = *link;
        if (one->start < address || one->start + one->size > address + size) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        leave_memory(one->memory);
        free(one);
        code = CU_SUCCESS;
    }
    unlock_tables();
    return code;
}

EXPORT int cuMemSetAccess(address_t address, size_t size, const struct access *access, size_t count)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    bool valid = access != NULL && count > 0 && is_mapped(address, size);
    unlock_tables();
    return valid ? CU_SUCCESS : CU_INVALID_VALUE;
}

EXPORT int cuMemGetAccess(uint64_t *flags, const struct location *location, address_t address)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    if (flags == NULL || location == NULL)
        return CU_INVALID_VALUE;
    lock_tables();
    *flags = is_mapped(address, 1) ? 3 : 0; /* read and write */
    unlock_tables();
    return CU_SUCCESS;
}

EXPORT int cuMemRetainAllocationHandle(struct object **handle, const void *address)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    int code = CU_INVALID_VALUE;
    lock_tables();
    for (struct mapped *one = mappings; one != NULL && handle != NULL; one = one->next)
        if (overlaps(one, (uint64_t)address, 1)) {
            one->memory->users++;
            *handle = one->memory;
            code = CU_SUCCESS;
        }
    unlock_tables();
    return code;
}

EXPORT int cuMemGetAllocationPropertiesFromHandle(struct allocation_properties *properties,
                                                  struct object *handle)
{
    struct object *memory = as_object(handle, OBJECT_MEMORY);
    if (memory == NULL || properties == NULL)
        return CU_INVALID_VALUE;
    *properties = (struct allocation_properties){
        .type = 1, .location = {LOCATION_DEVICE, memory->number},
    };
    return CU_SUCCESS;
}
