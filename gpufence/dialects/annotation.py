"""No sharing system at all: the pod's own annotation `gpufence.io/memory` declares what it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence.dialects.spec import WHOLE_CARD, Claim, Declared, DialectSpec
from gpufence.names import MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpufence.annotations import PodOptions
    from gpufence.dialects.spec import GpuRequest, Units
    from gpufence.pods import Pod


def read(_: Pod, __: Sequence[GpuRequest], ___: Units) -> None:
    """
    Declare nothing: the annotation grants an amount only where no other dialect has declared one.
    """


def by_annotation(pod: Pod, options: PodOptions) -> Declared:
    """
    Take a pod without any GPU resource at its word: the containers named, and the regular ones
    where there is an amount for the pod.
    """
    shared = options.memory_bytes is not None
    chosen = [
        item
        for item in pod.containers
        if item.name in options.memory_of or (shared and item.regular)
    ]
    claims = [Claim(item.name, WHOLE_CARD) for item in chosen or pod.containers]
    return Declared(SPEC.name, tuple(claims), "the pod's own annotation", implied=True)


SPEC = DialectSpec(
    name="annotation",
    system="none",
    unit=f"`{MEMORY}`, a quantity",
    read=read,
)
