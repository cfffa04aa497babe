/* What the files of the driver share among themselves. */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>

#include "../../../nvml/library/state.h"
#include "../api.h"

#define MAX_DEVICES MAX_CARDS

struct context;
struct pool;

/* A card, or the first instance of one in MIG mode, as this process numbers them. */
struct device {
    const struct card *card;
    const struct instance *instance; /* NULL: the whole card */
    int32_t slot, place;             /* in the state file; place is NO_INSTANCE for a card */
    int32_t record;                  /* of this process on it; -1: none yet */
    uint64_t small;                  /* bytes of small allocations, which share blocks */
};

/* ledger.c: what this process holds, as NVML and every other process sees it */
int ledger_open(void);
const struct state *ledger_state(void);
bool ledger_take(struct device *device, uint64_t bytes);
void ledger_give(struct device *device, uint64_t bytes);
uint64_t ledger_take_managed(struct device *device, uint64_t bytes);
void ledger_give_managed(struct device *device, uint64_t bytes);
void ledger_room(const struct device *device, uint64_t *free_bytes, uint64_t *total);
uint64_t ledger_total(const struct device *device);

/* visible.c: which cards CUDA_VISIBLE_DEVICES leaves */
int find_devices(const struct state *state, struct device devices[MAX_DEVICES]);

/* devices.c */
int ready(void);
struct device *device_at(int ordinal); /* NULL: there is none */
int device_count(void);
int device_number(const struct device *device, int attribute);

/* contexts.c: entries hold the lock while they look at or change tables */
void lock_tables(void);
void unlock_tables(void);
int current_context(struct context **context);
int context_ordinal(const struct context *context);

/* addresses.c */
enum origin { FROM_CARD, FROM_MANAGED, FROM_HOST, FROM_CALLER, FROM_POOL, FROM_RESERVATION };
struct allocation {
    uint64_t start, size, id;
    uint64_t charged; /* to the card */
    uint64_t kept;    /* bytes of its contents */
    enum origin origin;
    struct context *context;
    struct pool *pool;
    struct allocation *next, *previous;
};
struct allocation *find_allocation(uint64_t address);
struct allocation *newest_allocation(void);
struct allocation *add_allocation(enum origin origin, uint64_t size, uint64_t alignment);
bool note_allocation(struct allocation *allocation);
void drop_allocation(struct allocation *allocation);
void free_allocations_of_pool(const struct pool *pool);
bool keep_contents(uint64_t address, uint64_t size);
static inline uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* memory.c */
bool charge(struct device *device, uint64_t size);
void discharge(struct device *device, uint64_t size);
void free_allocations_of(const struct context *context);

/* pools.c */
void free_pools_of(const struct context *context);
void free_pooled(struct allocation *allocation);

/* handles.c: objects that callers know by a handle */
enum object_kind { OBJECT_NONE, OBJECT_STREAM, OBJECT_EVENT, OBJECT_MODULE, OBJECT_MEMORY };
struct object {
    enum object_kind kind;
    struct context *context;
    uint64_t value; /* event: nanoseconds; memory: bytes; stream: its flags */
    int number;     /* stream: priority; memory: device; event: recorded or not */
    uint32_t users; /* memory: mappings and references */
    struct object *next;
};
struct object *new_object(enum object_kind kind);
struct object *as_object(const void *handle, enum object_kind kind);
void drop_object(struct object *object);
void drop_objects_of(const struct context *context);

#endif
