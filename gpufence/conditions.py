"""
The CEL text by which the API server decides which pods reach the webhook at all.

Made from the dialects' specs and written into deploy/ by `make manifests`, so that no dialect is
known to the code and unknown to the manifests. A pod that no condition lets through costs its
creator nothing and us no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import ANNOTATION_KEYS, GPU_RESOURCES, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable


def uses_gpu() -> str:
    """
    Match pods that declare GPU memory in any known way, that have resource claims, or that carry
    an annotation of ours.
    """
    resources = _among("k", GPU_RESOURCES)
    prefixes = " || ".join(f"k.startsWith('{prefix}')" for prefix in PREFIXES)
    keys = _among("k", ANNOTATION_KEYS)
    return (
        "(object.spec.containers + object.spec.?initContainers.orValue([])).exists(c, "
        "c.?resources.?limits.orValue({}).exists(k, "
        f"{resources} || {prefixes})) || "
        "size(object.spec.?resourceClaims.orValue([])) > 0 || "
        "object.metadata.?annotations.orValue({}).exists(k, "
        f"{keys} || k.startsWith('{names.PREFIX}') || k.startsWith('{names.ENV_PREFIX}') || "
        f"{_of_containers(names.KAI_DRIVER)})"
    )


def no_mirror() -> str:
    """Match every pod but the mirrors of static pods, which the kubelet runs as it likes."""
    return f"!('{names.MIRROR}' in object.metadata.?annotations.orValue({{}}))"


def frozen() -> str:
    """
    List the annotations that were changed, of those that nobody may change once the pod exists.

    Whose a key is costs less to find out than what it says, so that is asked first.
    """
    ours = (
        f"(k.startsWith('{names.PREFIX}') || k.startsWith('{names.ENV_PREFIX}') || "
        f"{_among('k', ANNOTATION_KEYS)})"
    )
    return (
        f"variables.after.filter(k, {ours} && variables.before[?k] != variables.after[?k]) + "
        f"variables.before.filter(k, {ours} && !(k in variables.after))"
    )


def given() -> str:
    """
    List the annotations that were changed, of those that only who binds a pod may write, and before
    it has a node.
    """
    key = _of_containers((*names.KAI_DRIVER, names.KAI_GIVEN))
    return (
        f"variables.after.filter(k, {key} && variables.before[?k] != variables.after[?k]) + "
        f"variables.before.filter(k, {key} && !(k in variables.after))"
    )


def _of_containers(ends: Iterable[str]) -> str:
    """Match what is said of one container to those who let the driver hold it."""
    said = " || ".join([f"k.endsWith('{end}')" for end in ends])
    return f"(k.startsWith('{names.KAI_OF_CONTAINER}') && ({said}))"


def _among(variable: str, choices: Iterable[str]) -> str:
    quoted = ", ".join(f"'{choice}'" for choice in choices)
    return f"{variable} in [{quoted}]"
