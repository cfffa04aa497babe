/*
 * What callers of the driver and the runtime see: codes, attributes and structures.
 *
 * Our own declarations, written from NVIDIA's public reference, for what frameworks import.
 */
#ifndef API_H
#define API_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum result {
    CU_SUCCESS = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_CONTEXT = 201,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_PEER_ACCESS_UNSUPPORTED = 217,
    CU_PRIMARY_CONTEXT_ACTIVE = 708,
    CU_CONTEXT_IS_DESTROYED = 709,
    CU_HOST_MEMORY_NOT_REGISTERED = 713,
    CU_NOT_SUPPORTED = 801,
};

typedef uint64_t address_t; /* of device memory */

enum memory_type { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

enum device_attribute {
    ATTRIBUTE_MULTIPROCESSORS = 16,
    ATTRIBUTE_PCI_BUS = 33,
    ATTRIBUTE_MAJOR = 75,
    ATTRIBUTE_MINOR = 76,
};

enum location_type { LOCATION_DEVICE = 1 };

struct location {
    int type, id;
};

struct allocation_properties {
    int type, handle_types;
    struct location location;
    void *windows;
    struct {
        uint8_t compression, rdma;
        uint16_t usage;
        uint8_t reserved[4];
    } flags;
};

struct access {
    struct location location;
    int flags;
};

struct pool_properties {
    int type, handle_types;
    struct location location;
    void *windows;
    size_t most;
    uint16_t usage;
    uint8_t reserved[54];
};

enum pool_attribute {
    POOL_FOLLOW_EVENTS = 1,
    POOL_OPPORTUNISTIC = 2,
    POOL_INTERNAL = 3,
    POOL_THRESHOLD = 4,
    POOL_RESERVED = 5,
    POOL_RESERVED_HIGH = 6,
    POOL_USED = 7,
    POOL_USED_HIGH = 8,
};

enum pointer_attribute {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_HOST = 4,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_ORDINAL = 9,
    POINTER_START = 11,
    POINTER_SIZE = 12,
    POINTER_MAPPED = 13,
    POINTER_POOL = 17,
};

struct uuid {
    uint8_t bytes[16];
};

#endif
