/* What frameworks look for, but does not matter for memory: it says its name and fails. */
#include <stdio.h>

#include "driver.h"

#define UNSUPPORTED(name)                                                    \
    EXPORT int name(void)                                                    \
    {                                                                        \
        fprintf(stderr, "gpufence simulator: %s is not simulated\n", #name); \
        return CU_NOT_SUPPORTED;                                             \
    }

UNSUPPORTED(cuCtxFromGreenCtx)
UNSUPPORTED(cuDevResourceGenerateDesc)
UNSUPPORTED(cuDevSmResourceSplitByCount)
UNSUPPORTED(cuDeviceGetDevResource)
UNSUPPORTED(cuGreenCtxCreate)
UNSUPPORTED(cuGreenCtxDestroy)
UNSUPPORTED(cuGreenCtxStreamCreate)
UNSUPPORTED(cuIpcCloseMemHandle)
UNSUPPORTED(cuIpcGetEventHandle)
UNSUPPORTED(cuIpcGetMemHandle)
UNSUPPORTED(cuIpcOpenMemHandle_v2)
UNSUPPORTED(cuKernelGetAttribute)
UNSUPPORTED(cuLinkAddData_v2)
UNSUPPORTED(cuLinkAddFile_v2)
UNSUPPORTED(cuLinkComplete)
UNSUPPORTED(cuLinkCreate_v2)
UNSUPPORTED(cuLinkDestroy)
UNSUPPORTED(cuMemExportToShareableHandle)
UNSUPPORTED(cuMemImportFromShareableHandle)
UNSUPPORTED(cuMemcpy2DAsync_v2)
UNSUPPORTED(cuModuleGetGlobal_v2)
UNSUPPORTED(cuModuleLoad)
UNSUPPORTED(cuMulticastAddDevice)
UNSUPPORTED(cuMulticastBindMem)
UNSUPPORTED(cuMulticastCreate)
UNSUPPORTED(cuMulticastGetGranularity)
UNSUPPORTED(cuMulticastUnbind)
UNSUPPORTED(cuOccupancyMaxPotentialBlockSize)
UNSUPPORTED(cuStreamBeginCapture_v2)
UNSUPPORTED(cuStreamEndCapture)
UNSUPPORTED(cuStreamWaitValue32_v2)
UNSUPPORTED(cuStreamWaitValue64_v2)
UNSUPPORTED(cuStreamWriteValue32_v2)
UNSUPPORTED(cuStreamWriteValue64_v2)
UNSUPPORTED(cuTensorMapEncodeTiled)
