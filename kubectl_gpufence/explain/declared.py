"""
PURE. What the pod declares, where, and what that makes as a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.errors import shown
from gpufence.quantity import write_bytes
from kubectl_gpufence.table import wrapped
from kubectl_gpufence.words import allowed, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_gpufence.explain.story import Story
    from kubectl_gpufence.table import Look

_INDENT = "    "


def declared(story: Story, look: Look) -> Iterator[str]:
    """
    List every place where something is declared, then the sum.
    """
    for text in (*_resources(story), *_annotations(story), *_from_namespace(story), *_sums(story)):
        yield from wrapped(safe(text), _INDENT, look, first="  ")


def _resources(story: Story) -> Iterator[str]:
    for container in story.pod.pod.containers:
        asked = [
            f"{value} {key}" for key, value in sorted(container.limits.items()) if _is_gpu(key)
        ]
        if asked:
            yield f"{container.kind} {container.name} asks for {', '.join(asked)}"


def _annotations(story: Story) -> Iterator[str]:
    for key, value in sorted(story.pod.annotations.items()):
        ours = key in names.USER_KEYS or key.startswith(names.MEMORY_OF_CONTAINER)
        if ours or key in names.KAI_KEYS:
            yield f"annotation {key}: {shown(value)}"


def _from_namespace(story: Story) -> Iterator[str]:
    plan = story.pod.words.plan
    for key, value in sorted(({} if plan is None else plan.namespace).items()):
        yield f"its namespace said, when the pod was created, {key}: {shown(value)}"


def _sums(story: Story) -> Iterator[str]:
    said, plan = story.pod.declaration, story.pod.words.plan
    planned = None if plan is None else plan.limit_bytes
    if said.limit_bytes is not None:
        rest = "" if said.enforced else ", implied by the card and not enforced"
        yield f"= {_amount(said.limit_bytes)} on each card ({said.dialect}: {said.basis}){rest}"
    elif planned is None:
        yield f"= no limit: {said.why_not}"
    if planned is not None and planned != said.limit_bytes:
        dialect = plan.dialect if plan is not None else ""
        yield f"the webhook reckoned with {_amount(planned)} on each card ({dialect})"
    row = story.row
    for use in () if row is None else row.uses:
        limit = story.pod.limit_bytes
        if use.limit_bytes is not None and use.limit_bytes != limit:
            yield f"its agent enforces {_amount(use.limit_bytes)} on card {use.card}"


def _is_gpu(resource: str) -> bool:
    return resource in names.GPU_RESOURCES or resource.startswith(names.NVIDIA_MIG_PREFIX)


def _amount(amount: int) -> str:
    """
    Write an amount for reading, with its exact bytes where MiB would not say them.
    """
    exact = write_bytes(amount, largest="Mi")
    return exact if exact.endswith("Mi") else f"{allowed(amount)} ({amount} bytes)"
