/* What callers see: the codes, values and structures of NVML's binary interface on Linux. */
#ifndef NVML_H
#define NVML_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum code {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    LIB_RM_VERSION_MISMATCH = 18,
    MEMORY = 20,
    ARGUMENT_VERSION_MISMATCH = 25,
};

#define VALUE_NOT_AVAILABLE UINT64_MAX
#define ID_NOT_AVAILABLE UINT32_MAX

#define VERSIONED(type, version) ((unsigned)(sizeof(type) | ((version) << 24)))

struct memory {
    uint64_t total, free, used;
};

struct memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct limits_to_set {
    const char *name_space;
    uint64_t soft, hard;
};

struct limits_to_get {
    const char *name_space;
    uint64_t soft, hard, used;
};

/* Version 1 ends after memory; 535.43 to 535.86 wrote the protected memory into version 3, too. */
struct process_info {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance, compute_instance;
    uint64_t protected_memory;
};

struct process_list {
    uint32_t version, mode, count;
    struct process_info *entries;
};

struct process_sample {
    uint32_t pid;
    uint64_t time;
    uint32_t sm, bandwidth, encoder, decoder;
};

struct utilization {
    uint32_t gpu, memory;
};

struct accounting_stats {
    uint32_t gpu, bandwidth;
    uint64_t most_memory, milliseconds, since;
    uint32_t running, reserved[5];
};

struct gpm_support {
    uint32_t version, supported;
};

struct gpm_metric {
    uint32_t id, code;
    double value;
    const char *short_name, *long_name, *unit;
};

/* A caller's array of metrics is as long as its own header says. */
struct gpm_metrics {
    uint32_t version, count;
    const void *first, *second;
    struct gpm_metric metrics[];
};

struct pci_info {
    char legacy_bus_id[16];
    uint32_t domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

struct attributes {
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg, optical_flow;
    uint32_t gpu_slices, compute_slices;
    uint64_t memory_mib;
};

struct bar1_memory {
    uint64_t total, free, used;
};

struct protected_memory_size {
    uint64_t protected_kib, unprotected_kib;
};

struct temperature {
    uint32_t version, sensor;
    int32_t degrees;
};

#endif
