/* Which addresses belong to which allocation, and how much of their contents is kept. */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "driver.h"

#define MOST_KEPT (UINT64_C(1) << 30) /* bytes of contents, of all cards together */
#define PAGE UINT64_C(4096)

static void *tree; /* of allocations, by address */
static struct allocation *newest;
static uint64_t last_id, kept;

/* Ranges compare equal where they touch: so one address finds the allocation around it. */
static int compare(const void *left, const void *right)
{
    const struct allocation *one = left, *other = right;
    if (one->start + one->size <= other->start)
        return -1;
    return other->start + other->size <= one->start ? 1 : 0;
}

struct allocation *find_allocation(uint64_t address)
{
    struct allocation wanted = {.start = address, .size = 1};
    struct allocation **found = address == 0 ? NULL : tfind(&wanted, &tree, compare);
    return found == NULL ? NULL : *found;
}

/* Keep an allocation in mind; fails where its range touches that of another. */
bool note_allocation(struct allocation *allocation)
{
    struct allocation **place = tsearch(allocation, &tree, compare);
    if (place == NULL || *place != allocation)
        return false;
    allocation->id = ++last_id;
    allocation->next = newest;
    if (newest != NULL)
        newest->previous = allocation;
    newest = allocation;
    return true;
}

/* Map addresses that start at a multiple of the alignment; pages cost nothing until written to. */
static uint64_t map_addresses(uint64_t size, uint64_t alignment)
{
    uint64_t extra = alignment > PAGE ? alignment : 0;
    char *start = mmap(NULL, size + extra, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return 0;
    if (extra == 0)
        return (uint64_t)start;
    uint64_t aligned = round_up((uint64_t)start, alignment);
    uint64_t before = aligned - (uint64_t)start;
    if (before > 0)
        munmap(start, before);
    if (extra > before)
        munmap((char *)aligned + size, extra - before);
    return aligned;
}

struct allocation *add_allocation(enum origin origin, uint64_t size, uint64_t alignment)
{
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (allocation == NULL || size > UINT64_MAX / 4)
        goto failed;
    allocation->origin = origin;
    allocation->size = round_up(size, PAGE);
    allocation->start = map_addresses(allocation->size, alignment);
    if (allocation->start == 0)
        goto failed;
    if (note_allocation(allocation))
        return allocation;
    munmap((void *)allocation->start, allocation->size);
failed:
    free(allocation);
    return NULL;
}

void drop_allocation(struct allocation *allocation)
{
    kept -= allocation->kept;
    tdelete(allocation, &tree, compare);
    if (allocation->next != NULL)
        allocation->next->previous = allocation->previous;
    if (allocation->previous != NULL)
        allocation->previous->next = allocation->next;
    else
        newest = allocation->next;
    if (allocation->origin != FROM_CALLER)
        munmap((void *)allocation->start, allocation->size);
    free(allocation);
}

struct allocation *newest_allocation(void)
{
    return newest;
}

void free_allocations_of_pool(const struct pool *pool)
{
    struct allocation *next;
    for (struct allocation *one = newest; one != NULL; one = next) {
        next = one->next;
        if (one->pool == pool)
            drop_allocation(one);
    }
}

/* Whether contents that a program writes there may be kept: memory of this machine is finite. */
bool keep_contents(uint64_t address, uint64_t size)
{
    lock_tables();
    struct allocation *found = find_allocation(address);
    bool on_card = found != NULL && found->origin != FROM_HOST && found->origin != FROM_CALLER;
    uint64_t rest = on_card ? found->size - found->kept : 0;
    uint64_t more = size < rest ? size : rest;
    bool fits = kept + more <= MOST_KEPT;
    if (fits && on_card) {
        found->kept += more;
        kept += more;
    }
    unlock_tables();
    return fits;
}
