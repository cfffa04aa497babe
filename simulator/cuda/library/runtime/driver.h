/* The driver's entries that the runtime stands on. */
#ifndef RUNTIME_DRIVER_H
#define RUNTIME_DRIVER_H

#include "../api.h"

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *name, void **entry, int version, uint64_t flags, int *status);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int length, int device);
int cuDeviceGetUuid_v2(struct uuid *uuid, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetPCIBusId(char *text, int length, int device);
int cuDeviceGetByPCIBusId(int *device, const char *text);
int cuDeviceCanAccessPeer(int *possible, int device, int peer);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuDeviceGetMemPool(void **pool, int device);
int cuDeviceSetMemPool(int device, const void *pool);
int cuCtxGetDevice(int *device);
int cuCtxSetCurrent(void *context);
int cuCtxSynchronize(void);
int cuCtxGetStreamPriorityRange(int *least, int *greatest);
int cuMemAlloc_v2(address_t *address, size_t size);
int cuMemAllocManaged(address_t *address, size_t size, unsigned flags);
int cuMemHostAlloc(void **address, size_t size, unsigned flags);
int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int cuMemHostUnregister(void *address);
int cuMemHostGetDevicePointer_v2(address_t *address, void *host, unsigned flags);
int cuMemFree_v2(address_t address);
int cuMemFreeHost(void *address);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuMemAllocAsync(address_t *address, size_t size, const void *stream);
int cuMemAllocFromPoolAsync(address_t *address, size_t size, const void *pool, const void *stream);
int cuMemFreeAsync(address_t address, const void *stream);
int cuMemPoolCreate(void **pool, const struct pool_properties *properties);
int cuMemPoolDestroy(void *pool);
int cuMemPoolGetAttribute(const void *pool, int attribute, void *value);
int cuMemPoolSetAttribute(const void *pool, int attribute, const void *value);
int cuMemPoolSetAccess(const void *pool, const struct access *access, size_t count);
int cuMemPoolTrimTo(const void *pool, size_t keep);
int cuPointerGetAttribute(void *value, int attribute, address_t address);
int cuMemcpyAsync(address_t target, address_t source, size_t size, const void *stream);
int cuMemsetD8_v2(address_t target, uint8_t value, size_t count);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(const void *stream);
int cuStreamSynchronize(const void *stream);
int cuStreamQuery(const void *stream);
int cuStreamGetPriority(const void *stream, int *priority);
int cuStreamIsCapturing(const void *stream, int *status);
int cuStreamWaitEvent(const void *stream, const void *event, unsigned flags);
int cuStreamAddCallback(void *stream, void (*function)(void *, int, void *), void *data,
                        unsigned flags);
int cuLaunchHostFunc(const void *stream, void (*function)(void *), void *data);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(const void *event);
int cuEventRecord(const void *event, const void *stream);
int cuEventQuery(const void *event);
int cuEventSynchronize(const void *event);
int cuEventElapsedTime(float *milliseconds, const void *start, const void *end);
int cuLaunchKernel(void);
int cuGraphLaunch(void);

#endif
