"""
PURE. Reading a pod that is being created, as far as it may be believed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.candidates import wanted_resources
from gpufence.dialects import concerns_gpufence
from gpufence.shape import as_object
from webhook.rewrite.notes import scheduler_books, words_for
from webhook.rewrite.question import (
    Question,
    annotations_of,
    containers_of,
    namespace_of,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.mode import Mode
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.policy import Policy

_WINDOWS = "it runs on Windows, where nothing of gpufence applies"
_MIRROR = "it mirrors a static pod, which the kubelet runs as its file says"


class Entry(NamedTuple):
    """
    A pod at the door: the pod as it counts, the namespace's words it takes over, and remarks.

    `standing` remarks hold as long as the pod does; `passing` ones are about what is dropped now,
    and a second look does not find it again.
    """

    pod: Pod
    words: Mapping[str, str]
    standing: tuple[str, ...]
    passing: tuple[str, ...]


def out_of_scope(manifest: Object, pod: Pod) -> str:
    """
    Say why a pod is none of ours; empty where it is.
    """
    if names.MIRROR in pod.annotations:
        return _MIRROR
    spec = as_object(manifest.get("spec"), "spec")
    system = as_object(spec.get("os"), "spec.os").get("name")
    if "windows" in (system, pod.node_selector.get(names.OS)):
        return _WINDOWS
    return ""


def concerns_us(pod: Pod) -> bool:
    """
    Tell whether a pod is one for which the API server calls the webhook.
    """
    return bool(wanted_resources(pod)) or concerns_gpufence(pod.annotations)


def enter(pod: Pod, namespace: Mapping[str, str]) -> Entry:
    """
    Take over the namespace's words, and leave out what only schedulers may write.
    """
    books = scheduler_books(pod.annotations)
    if not namespace and not books:
        return Entry(pod, {}, (), ())
    containers = frozenset(item.name for item in pod.containers)
    heard = namespace if concerns_us(pod) else {}
    words, problems = words_for(heard, pod.annotations, containers)
    kept = {key: text for key, text in pod.annotations.items() if key not in books}
    return Entry(
        pod._replace(annotations={**kept, **words}),
        words,
        standing=tuple(f"namespace {problem.sentence}" for problem in problems),
        passing=tuple(f"{key} is for schedulers and device plugins; dropped" for key in books),
    )


def ask(
    pod: Pod, mode: Mode, namespace: Mapping[str, str], fleet: Fleet, policy: Policy
) -> Question:
    """
    Ask about a pod that is being created, on every card of the fleet that it may meet.
    """
    choices = fleet.candidates(pod, policy.default)
    node = fleet.node(pod.node_name) if pod.node_name else None
    known = node is not None and all(choice.memory_bytes is not None for choice in choices)
    return Question(
        mode=mode,
        containers=containers_of(pod),
        annotations=annotations_of(pod.annotations),
        selector=tuple(pod.node_selector.items()),
        claims=pod.has_resource_claims,
        namespace=namespace_of(namespace),
        choices=choices,
        reserve_override=policy.reserve_override,
        place=place_of(pod, node) if node is not None and known else None,
    )
