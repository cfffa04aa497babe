"""
What the API server says of the resource claims of one pod, while its creator or scheduler waits.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from gpufence import names
from gpufence.claim_requests import class_key, classes_asked
from gpufence.devices import MOST_READ
from gpufence.errors import GpufenceError
from gpufence.slices import cards_of
from kube import group
from kube.replies import objects_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from gpufence.cards import Card
    from gpufence.pods import PodClaim
    from gpufence.shape import Object
    from kube import JsonObject

ClaimsFound: TypeAlias = "Mapping[str, Object | str]"
"""
Each claim by the pod's own name for it, or why nobody can say what it gives; and the classes that
they ask for.
"""
CONFLICT: Final = "conflict"
"""The reason of an UnknownError where somebody else has changed what was to be written."""
SLOW: Final = "api-slow"
"""The same where no answer came in time, and what was asked for may have been done."""
_MOST_CLASSES = 8
_resource = partial(group, names.RESOURCE_GROUP)


class UnknownError(GpufenceError):
    """
    Raised when the cluster cannot be asked, does not answer in time, or says no.

    `reason` is a word for the metrics.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Asking(Protocol):
    """Asks the API server within a deadline. Raises UnknownError."""

    async def __call__(
        self, where: Callable[..., str], *segments: str, **query: str
    ) -> JsonObject: ...


async def ask_claims(ask: Asking, namespace: str, claims: Sequence[PodClaim]) -> ClaimsFound:
    """
    Ask for all claims at the same time, or for the templates of those that are not made yet; then
    for the classes that tell whether it is GPUs that they ask for.
    """
    asked = claims[:MOST_READ]
    answers = await asyncio.gather(*[_ask_claim(ask, namespace, ref) for ref in asked])
    found = {ref.name: answer for ref, answer in zip(asked, answers, strict=True)}
    return {**found, **await _ask_classes(ask, classes_asked(answers))}


async def ask_devices(ask: Asking, node: str) -> Mapping[str, Card]:
    """Ask for the cards that a node's DRA driver publishes; without an answer there are none."""
    try:
        listed = await ask(_resource, "resourceslices", fieldSelector=f"spec.nodeName={node}")
    except UnknownError:
        return {}
    return cards_of(objects_of(listed, "items"))


async def _ask_classes(ask: Asking, classes: Sequence[str]) -> ClaimsFound:
    asked, left = classes[:_MOST_CLASSES], classes[_MOST_CLASSES:]
    answers = await asyncio.gather(
        *[_told(ask(_resource, "deviceclasses", name)) for name in asked]
    )
    found = {class_key(name): answer for name, answer in zip(asked, answers, strict=True)}
    why = f"is not read, as no other beyond {_MOST_CLASSES}"
    return {**found, **{class_key(name): why for name in left}}


async def _ask_claim(ask: Asking, namespace: str, ref: PodClaim) -> Object | str:
    if ref.claim:
        return await _told(ask(_resource, "namespaces", namespace, "resourceclaims", ref.claim))
    template = ask(_resource, "namespaces", namespace, "resourceclaimtemplates", ref.template)
    return await _told(template)


async def _told(question: Awaitable[JsonObject]) -> Object | str:
    try:
        return await question
    except UnknownError as error:
        return "does not exist" if error.reason == "not-found" else f"cannot be read: {error}"
