/* Codes, as driver and runtime name them, and what they mean. */
#ifndef ERRORS_H
#define ERRORS_H

#define ERRORS(X)                                                                                  \
    X(0, "CUDA_SUCCESS", "cudaSuccess", "no error")                                                \
    X(1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument")                  \
    X(2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory")                 \
    X(3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error")     \
    X(100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected")      \
    X(101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal")        \
    X(201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", "invalid device context") \
    X(217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported",                 \
      "peer access is not supported between these two devices")                                    \
    X(400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle",                          \
      "invalid resource handle")                                                                   \
    X(500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found")            \
    X(708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess",                     \
      "cannot set while device is active in this process")                                         \
    X(709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed",                       \
      "context is destroyed")                                                                      \
    X(712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered",    \
      "part or all of the requested memory range is already mapped")                               \
    X(713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered",            \
      "pointer does not correspond to a registered memory region")                                 \
    X(801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported")

#endif
