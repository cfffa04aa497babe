"""
The CEL text by which the API server decides which pods reach the webhook at all.

Generated from names.py, so that a new dialect cannot be known to the code and unknown to the
manifests. A pod that no condition lets through costs its creator nothing and us no request.
"""

from __future__ import annotations

from gpufence import names


def uses_gpu() -> str:
    """
    Match pods that declare GPU memory in any known way, or carry an annotation of ours.
    """
    resources = _among("k", names.GPU_RESOURCES)
    keys = _among("k", names.KAI_KEYS)
    return (
        "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
        "c.?resources.?limits.orValue({}).exists(k, "
        f"{resources} || k.startsWith('{names.NVIDIA_MIG_PREFIX}'))) || "
        "object.metadata.?annotations.orValue({}).exists(k, "
        f"{keys} || k.startsWith('{names.PREFIX}') || k.startsWith('{names.ENV_PREFIX}'))"
    )


def no_mirror() -> str:
    """
    Match every pod but the mirrors of static pods, which the kubelet runs as it likes.
    """
    return f"!('{names.MIRROR}' in object.metadata.?annotations.orValue({{}}))"


def _among(variable: str, choices: tuple[str, ...]) -> str:
    quoted = ", ".join(f"'{choice}'" for choice in choices)
    return f"{variable} in [{quoted}]"
