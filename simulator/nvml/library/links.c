/* What connects a card to the rest: its PCIe slot, and NVLinks, which no card of ours has. */
#include "library.h"

#define OLDEST_GENERATION 3 /* of PCI Express, up to Turing; each later family has one more */

EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(device_t device, unsigned *generation)
{
    struct call call;
    int code = begin_card(&call, FN_nvmlDeviceGetCurrPcieLinkGeneration, device);
    if (code != SUCCESS)
        return code;
    if (generation == NULL)
        return INVALID_ARGUMENT;
    uint32_t family = call.card->capability_major;
    *generation = OLDEST_GENERATION + (family > 7 ? family - 7 : 0);
    return SUCCESS;
}

static int no_link(enum function function, device_t device, const void *answer)
{
    struct call call;
    int code = begin_card(&call, function, device);
    if (code != SUCCESS)
        return code;
    return answer == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(device_t device, unsigned link, int *type)
{
    (void)link;
    return no_link(FN_nvmlDeviceGetNvLinkRemoteDeviceType, device, type);
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t device, unsigned link, void *info)
{
    (void)link;
    return no_link(FN_nvmlDeviceGetNvLinkRemotePciInfo_v2, device, info);
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(device_t device, void *info)
{
    return no_link(FN_nvmlDeviceGetGpuFabricInfoV, device, info);
}
