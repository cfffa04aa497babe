/* What an address is: whose memory, on which card, from where to where. */
#include <string.h>

#include "driver.h"

static int type_of(const struct allocation *allocation)
{
    switch (allocation->origin) {
    case FROM_HOST:
    case FROM_CALLER: return MEMORY_HOST;
    default: return MEMORY_DEVICE;
    }
}

static int tell(const struct allocation *found, int attribute, uint64_t address, void *target)
{
    int ordinal = found->context == NULL ? 0 : context_ordinal(found->context);
    switch (attribute) {
    case POINTER_CONTEXT: *(const void **)target = found->context; break;
    case POINTER_MEMORY_TYPE: *(unsigned *)target = (unsigned)type_of(found); break;
    case POINTER_DEVICE: *(uint64_t *)target = address; break;
    case POINTER_HOST:
        if (found->origin == FROM_CARD || found->origin == FROM_POOL)
            return CU_INVALID_VALUE;
        *(uint64_t *)target = address;
        break;
    case POINTER_BUFFER_ID: *(uint64_t *)target = found->id; break;
    case POINTER_IS_MANAGED: *(unsigned *)target = found->origin == FROM_MANAGED; break;
    case POINTER_ORDINAL: *(int *)target = ordinal; break;
    case POINTER_START: *(uint64_t *)target = found->start; break;
    case POINTER_SIZE: *(size_t *)target = found->size; break;
    case POINTER_MAPPED: *(unsigned *)target = 1; break;
    case POINTER_POOL: *(const void **)target = found->pool; break;
    default: return CU_NOT_SUPPORTED;
    }
    return CU_SUCCESS;
}

EXPORT int cuPointerGetAttribute(void *target, int attribute, address_t address)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    const struct allocation *found = find_allocation(address);
    int code = CU_INVALID_VALUE;
    if (found != NULL && target != NULL)
        code = tell(found, attribute, address, target);
    unlock_tables();
    return code;
}

/* Never fails for an address that is not ours: each answer is then zero. */
EXPORT int cuPointerGetAttributes(unsigned count, const int *attributes, void **targets,
                                  address_t address)
{
    static const size_t narrow[] = {[POINTER_MEMORY_TYPE] = 4, [POINTER_IS_MANAGED] = 4,
                                    [POINTER_ORDINAL] = 4, [POINTER_MAPPED] = 4, [POINTER_POOL] = 0};
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    for (unsigned i = 0; i < count; i++) {
        if (cuPointerGetAttribute(targets[i], attributes[i], address) == CU_SUCCESS)
            continue;
        bool known = attributes[i] > 0 && attributes[i] <= POINTER_POOL;
        memset(targets[i], 0, known && narrow[attributes[i]] ? narrow[attributes[i]] : 8);
        if (attributes[i] == POINTER_ORDINAL)
            *(int *)targets[i] = -2; /* as documented for memory that is no device's */
    }
    return CU_SUCCESS;
}

EXPORT int cuMemGetAddressRange_v2(address_t *start, size_t *size, address_t address)
{
    if (ready() != CU_SUCCESS)
        return CU_NOT_INITIALIZED;
    lock_tables();
    const struct allocation *found = find_allocation(address);
    if (found != NULL && start != NULL)
        *start = found->start;
    if (found != NULL && size != NULL)
        *size = found->size;
    unlock_tables();
    return found == NULL ? CU_NOT_FOUND : CU_SUCCESS;
}
