/*
 * The state file: the only thing that the library and simulator/nvml/layout.py share.
 *
 * Fixed layout, little endian, every field naturally aligned. Both sides describe it by hand; a
 * test lets the compiler compare them. Raise STATE_VERSION with any change.
 */
#ifndef STATE_H
#define STATE_H

#include <stdatomic.h>
#include <stdint.h>

#define STATE_MAGIC UINT64_C(0x65636e6566757067) /* "gpufence" */
#define STATE_VERSION 7

#define MAX_CARDS 16
#define MAX_INSTANCES 7
#define MAX_RECORDS 1024
#define MAX_LEVELS 8
#define MAX_FAULTS 64
#define MAX_ACCOUNTS 128
#define MAX_LIMITS 256
#define MAX_CHARGES 4
#define MAX_FUNCTIONS 128
#define TEXT_SIZE 96
#define SHORT_TEXT_SIZE 32
#define PATH_SIZE 400

/* A live holder keeps a POSIX write lock on the byte RECORD_LOCKS + slot. Far beyond the contents. */
#define RECORD_LOCKS INT64_C(0x10000000)

/* Whoever changes how much memory is taken holds a lock on this byte. */
#define ALLOCATION_LOCK INT64_C(0x20000000)

#define ANY_CARD (-1)
#define NO_INSTANCE (-1)
#define NOT_SUPPORTED_VALUE UINT32_C(0xffffffff)

enum record_status { RECORD_FREE = 0, RECORD_USED = 1 };

/* How the library learns whether a record's process lives. */
enum record_kind {
    KIND_HELD = 0,    /* by the lock on the record's byte; the kernel also tells the PID */
    KIND_CHECKED = 1, /* by kill(pid, 0) */
    KIND_KEPT = 2,    /* it is listed until removed, also without a /proc entry */
};

enum list { LIST_COMPUTE = 1, LIST_GRAPHICS = 2, LIST_MPS = 4 };

/* How the driver counts memory by control group, chosen when it is loaded: as RmMemacctMode says. */
enum memacct {
    MEMACCT_OFF = 0,
    MEMACCT_MISC = 1, /* a map of its own: flat, the nearest limited group counts */
    MEMACCT_DMEM = 2, /* the kernel's controller: every group counts, and all above it */
};

enum limit_status { LIMIT_FREE = 0, LIMIT_CLAIMED = 1, LIMIT_SET = 2 };

enum action {
    ACTION_RETURN = 1,        /* argument: the code */
    ACTION_DELAY = 2,         /* argument: microseconds */
    ACTION_HANG = 3,          /* never returns, deaf to all signals but SIGKILL */
    ACTION_CRASH = 4,         /* SIGSEGV */
    ACTION_NOT_AVAILABLE = 5, /* process memory is N/A */
    ACTION_ZERO = 6,          /* process memory is 0 */
    ACTION_DUPLICATE = 7,     /* argument: how often each process is listed */
    ACTION_PAD = 8,           /* argument: this many processes more, without /proc entries */
    ACTION_KEEP = 9,          /* argument: only so many processes are listed */
    ACTION_GARBLE = 10,       /* strings hold invalid UTF-8 */
    ACTION_SHIFT = 11,        /* argument: PIDs are larger by so much, as of another namespace */
    ACTION_DIVIDE = 12,       /* argument: process memory counts in units of so many bytes */
    ACTION_LINGER = 13,       /* processes that have ended stay */
};

struct instance {
    uint64_t total;
    uint64_t reserved;
    uint32_t used;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint32_t slices;
    uint32_t multiprocessors;
    uint32_t unused;
    char uuid[TEXT_SIZE];
    char profile[SHORT_TEXT_SIZE];
};

struct card {
    uint64_t total;
    uint64_t reserved;
    uint64_t extra; /* used on the device, but by no process */
    uint32_t bus;
    uint32_t pci_device;
    uint32_t capability_major;
    uint32_t capability_minor;
    uint32_t temperature;
    uint32_t fan;
    uint32_t idle_milliwatts;
    uint32_t limit_milliwatts;
    uint32_t sm_clock;
    uint32_t memory_clock;
    uint32_t mig_mode; /* NOT_SUPPORTED_VALUE: the card has none */
    uint32_t mig_generation; /* raised with every change of the instances */
    uint32_t mig_reuse;      /* 1: handles from before a change are taken for the new instances */
    uint32_t accounting;     /* 1: processes that begin from now on are accounted */
    uint32_t unified;        /* 1: no memory of its own, but the machine's */
    struct instance instances[MAX_INSTANCES];
    char uuid[TEXT_SIZE];
    char name[TEXT_SIZE];
    char serial[SHORT_TEXT_SIZE];
};

/* How busy a process keeps its card, from a moment on: microseconds since 1970. */
struct level {
    uint64_t since;
    uint32_t sm;
    uint32_t bandwidth;
    uint32_t encoder;
    uint32_t decoder;
};

/* What of a record's memory misc has charged to a limit: its place in the table plus 1; 0: none. */
struct charge {
    uint64_t bytes;
    uint32_t limit;
    uint32_t unused;
};

struct record {
    _Atomic uint64_t sequence; /* odd while the record is being written */
    uint64_t memory;
    uint64_t managed; /* UVM: used on the device, attributed to nobody */
    uint64_t started; /* field 22 of /proc/PID/stat */
    uint64_t name_space;
    uint64_t peak;  /* the most memory it ever held */
    uint64_t since; /* microseconds since 1970 */
    uint32_t status;
    uint32_t kind;
    uint32_t pid; /* as its writer sees it */
    int32_t card;
    int32_t instance;
    uint32_t lists;
    uint32_t level_count; /* all there ever were; the newest are kept, in a ring */
    uint32_t accounted;
    struct level levels[MAX_LEVELS];
    struct charge charges[MAX_CHARGES]; /* the newest last */
    char group[PATH_SIZE]; /* the control group's folder; empty: of no group that counts */
};

/* What one control group may have of one card; UINT64_MAX is no limit. */
struct limit {
    uint64_t soft;
    uint64_t hard;
    uint64_t inode; /* of the group's folder when it was set */
    _Atomic uint32_t status;
    int32_t card;
    char group[PATH_SIZE];
};

/* An accounted process that has ended, or let go of all it held. */
struct account {
    uint64_t peak;
    uint64_t since;
    uint64_t started;
    uint64_t name_space;
    uint32_t pid;
    int32_t card;
};

struct fault {
    _Atomic uint64_t seen;
    uint64_t after;
    uint64_t times; /* 0: for ever */
    int64_t argument;
    uint32_t active;
    uint32_t action;
    uint32_t first; /* the functions it applies to, as a range of ids */
    uint32_t last;
    int32_t card;
    uint32_t unused;
};

struct state {
    uint64_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t driver_epoch; /* raised when the driver is replaced */
    uint32_t card_count;
    uint32_t record_count; /* records beyond this one were never used */
    uint32_t fault_count;
    uint32_t order[MAX_CARDS]; /* NVML index -> place in cards */
    uint32_t memacct;
    uint32_t totals_capped; /* 1: a group's limit is the total wherever one asks for a total */
    char driver[SHORT_TEXT_SIZE]; /* empty: the library's own version */
    _Atomic uint64_t calls[MAX_FUNCTIONS];
    struct card cards[MAX_CARDS];
    struct fault faults[MAX_FAULTS];
    uint64_t account_count; /* all there ever were; the newest are kept, in a ring */
    struct account accounts[MAX_ACCOUNTS];
    struct limit limits[MAX_LIMITS];
    struct record records[MAX_RECORDS];
};

#endif
