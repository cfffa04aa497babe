"""Cards as drivers show them, and as clouds and feature discovery call them in labels."""

from typing import NamedTuple

from gpufence import names


class Sold(NamedTuple):
    """A card as a driver shows it, in MiB, and as AWS, Google and feature discovery call it."""

    shown: int
    aws: tuple[str, int]
    google: str
    product: str


CARDS = (
    Sold(15360, ("t4", 16384), "nvidia-tesla-t4", "Tesla-T4"),
    Sold(15079, ("t4", 16384), "nvidia-tesla-t4", "Tesla-T4-SHARED"),
    Sold(11441, ("k80", 12288), "nvidia-tesla-k80", "Tesla-K80"),
    Sold(16160, ("v100", 16384), "nvidia-tesla-v100", "Tesla-V100-SXM2-16GB"),
    Sold(32510, ("v100", 32768), "nvidia-tesla-v100", "Tesla-V100-SXM2-32GB"),
    Sold(23028, ("a10g", 22888), "nvidia-a10g", "NVIDIA-A10G"),
    Sold(23034, ("l4", 22888), "nvidia-l4", "NVIDIA-L4"),
    Sold(2812, ("l4", 2861), "nvidia-strange", "NVIDIA-L4-3Q"),
    Sold(46068, ("l40s", 45776), "nvidia-l40s", "NVIDIA-L40S"),
    Sold(40536, ("a100", 40960), "nvidia-tesla-a100", "A100-SXM4-40GB"),
    Sold(40960, ("a100", 40960), "nvidia-tesla-a100", "NVIDIA-A100-SXM4-40GB"),
    Sold(81920, ("a100", 81920), "nvidia-a100-80gb", "NVIDIA-A100-SXM4-80GB"),
    Sold(81559, ("h100", 81920), "nvidia-h100-mega-80gb", "NVIDIA-H100-80GB-HBM3"),
    Sold(97871, ("gh200", 98304), "nvidia-gh200", "NVIDIA-GH200-480GB"),
    Sold(97887, ("rtx-pro-6000", 98304), "nvidia-rtx-pro-6000", "NVIDIA-RTX-PRO-6000-Blackwell"),
    Sold(143771, ("h200", 144384), "nvidia-h200-141gb", "NVIDIA-H200"),
    Sold(183359, ("b200", 183296), "nvidia-b200", "NVIDIA-B200"),
    Sold(275040, ("b300", 274432), "nvidia-b300", "NVIDIA-B300-SXM6-AC"),
)


def labels_of(kind: str, sold: Sold) -> dict[str, str]:
    name, memory = sold.aws
    return {
        "nothing": {},
        "pool": {names.KARPENTER_POOL: "gpus"},
        "karpenter": {
            names.KARPENTER_POOL: "gpus",
            names.KARPENTER_GPU_MEMORY: str(memory),
            names.KARPENTER_GPU_NAME: name,
            names.KARPENTER_GPU_COUNT: "1",
        },
        "karpenter, memory alone": {names.KARPENTER_GPU_MEMORY: str(memory)},
        "eks": {
            names.EKS_COMPUTE: "auto",
            names.EKS_GPU_MEMORY: str(memory),
            names.EKS_GPU_NAME: name,
            names.EKS_GPU_COUNT: "1",
        },
        "gke": {names.GKE_ACCELERATOR: sold.google, names.GKE_ACCELERATOR_COUNT: "1"},
        "product": {names.GFD_PRODUCT: sold.product},
        "measured": {names.GFD_PRODUCT: sold.product, names.GFD_MEMORY: str(sold.shown)},
    }[kind]
