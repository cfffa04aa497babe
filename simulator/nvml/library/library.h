/* What the library's files share among themselves. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "functions.h"
#include "nvml.h"
#include "state.h"

/* One variant of the library per driver generation; simulator/nvml/build.py sets these. */
#ifndef DRIVER_VERSION
#define DRIVER_VERSION "580.95.05"
#define CUDA_VERSION 13000
#endif
#ifndef LIST_V2
#define LIST_V2 1
#endif
#ifndef LIST_V3
#define LIST_V3 1
#endif
#ifndef LIST_V3_ENTRY
#define LIST_V3_ENTRY 24
#endif
#ifndef DETAIL_LIST
#define DETAIL_LIST 1
#endif
#ifndef PROTECTED_MEMORY
#define PROTECTED_MEMORY 1
#endif
#ifndef MEMORY_INFO_V2
#define MEMORY_INFO_V2 1
#endif
#ifndef MEMORY_LIMITS
#define MEMORY_LIMITS 0
#endif

typedef const void *device_t;

/* One call of a client: what it is about, and what the active faults do to it. */
struct call {
    struct state *state;
    struct card *card;
    int32_t slot;     /* the card's place in state->cards */
    int32_t instance; /* NO_INSTANCE: the whole card */
    bool garble, not_available, zero, linger;
    uint64_t keep;   /* at most so many processes */
    uint64_t repeat; /* each process so often */
    uint64_t pad;    /* processes that are not there */
    uint64_t divide; /* their memory by this, if any */
    uint32_t shift;  /* what is added to their PIDs */
};

/* statefile.c */
struct mapping {
    struct state *state;
    int descriptor;
    uint64_t device, inode;
};
int find_state(char *path, size_t size);
int map_state(const char *path, struct mapping *mapping);

/* attach.c */
int attach(struct call *call, enum function function);
int begin(struct call *call, enum function function);
int state_descriptor(void);

/* handles.c */
device_t handle_of(const struct call *call, int32_t slot, int32_t instance);
int begin_device(struct call *call, enum function function, device_t device);
int begin_card(struct call *call, enum function function, device_t device);
bool hidden_by_mig(const struct call *call);

/* faults.c */
int apply_faults(struct call *call, enum function function);

/* strings.c */
int give_text(const struct call *call, const char *text, char *target, unsigned size);

/* records.c; simulator/cuda is built with it and statefile.c, too */
uint64_t own_namespace(void);
uint64_t own_start(void);
uint64_t now_microseconds(void);
enum presence { GONE, HERE, ELSEWHERE };
struct seen {
    struct record record;
    enum presence presence;
    uint32_t pid; /* as the caller sees it; 0 where it sees nothing */
};
bool look(const struct call *call, uint32_t slot, struct seen *seen);
bool concerns(const struct call *call, const struct record *record);
uint64_t used_by_processes(const struct call *call);
void keep_account(struct state *state, struct record *record);

/* groups.c; simulator/cuda is built with it, too */
#define NO_LIMIT UINT64_MAX
bool is_group(const char *path);
bool is_top_group(const char *path);
bool is_counted_by_kernel(const char *path);
bool go_up(char *path);
const char *own_group(void);
struct limit *find_limit(const struct call *call, const char *group);
struct limit *nearest_limit(const struct call *call, const char *group);
uint64_t used_by_group(const struct call *call, const char *group);
uint64_t used_of_limit(const struct call *call, const struct limit *limit);
uint64_t headroom(const struct call *call, const char *group);
uint64_t shown_limit(const struct call *call, const char *group, uint64_t *used);
void charge_group(const struct call *call, struct record *record, uint64_t bytes);
void discharge_group(struct record *record, uint64_t bytes);

/* levels.c */
#define SAMPLE_MICROSECONDS UINT64_C(100000)
#define BUFFER_SAMPLES 200
/* Percent times microseconds; `newest` is when the newest sample with any of it ended. */
struct work {
    uint64_t newest;
    uint64_t sm;
    uint64_t bandwidth;
    uint64_t encoder;
    uint64_t decoder;
};
struct level level_of(const struct record *record);
uint64_t sample_time(void);
bool add_work(const struct record *record, uint64_t after, uint64_t until, struct work *sum);

/* usage.c */
struct utilization utilization(const struct call *call);

#endif
