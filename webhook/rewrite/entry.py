"""
PURE. Reading a pod that is being created, as far as it may be believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.candidates import wanted_resources
from gpufence.shape import as_object
from gpufence.wishes import read_wishes
from webhook.rewrite.case import Case, kept_words
from webhook.rewrite.notes import concerns_us, scheduler_books, words_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.mode import Mode
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.policy import Policy

_WINDOWS = "it runs on Windows, where nothing of gpufence applies"
_MIRROR = "it mirrors a static pod, which the kubelet runs as its file says"
_NO_GPU = "it asks for no GPU memory"


@dataclass(frozen=True, slots=True)
class Entry:
    """
    A pod at the door: the case it makes, the namespace's words it takes over, and remarks.

    `standing` remarks hold as long as the pod does; `passing` ones are about what is dropped now,
    and a second look does not find it again.
    """

    case: Case
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
    return "" if wanted_resources(pod) or concerns_us(pod.annotations) else _NO_GPU


def enter(
    manifest: Object,
    pod: Pod,
    mode: Mode,
    namespace: Mapping[str, str],
    fleet: Fleet,
    policy: Policy,
) -> Entry:
    """
    Read a pod with its namespace's words, leaving out what only schedulers may write.
    """
    containers = frozenset(item.name for item in pod.containers)
    books = scheduler_books(pod.annotations)
    words, problems = words_for(namespace, pod.annotations, containers)
    if books or words:
        kept = {key: text for key, text in pod.annotations.items() if key not in books}
        pod = replace(pod, annotations={**kept, **words})
    choices = fleet.candidates(pod, policy.default)
    node = fleet.node(pod.node_name) if pod.node_name else None
    known = all(choice.memory_bytes is not None for choice in choices)
    case = Case(
        manifest=manifest,
        pod=pod,
        wishes=read_wishes(pod.annotations, containers),
        namespace=kept_words(namespace),
        mode=mode,
        policy=policy,
        choices=choices,
        node=node if known else None,
    )
    return Entry(
        case,
        words,
        standing=tuple(f"namespace {problem.sentence}" for problem in problems),
        passing=tuple(f"{key} is for schedulers and device plugins; dropped" for key in books),
    )
