"""
PURE. The terms of a pod: its limits on every card, its wishes, and the course to take.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.annotations import read_namespace_options, read_pod_options
from gpufence.dialects import Unreadable, annotation, gpu_requests
from gpufence.mode import Mode
from webhook.frameworks.ask import How
from webhook.rewrite import sentences
from webhook.rewrite.reach import Reach, read_reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.annotations import PodOptions
    from gpufence.dialects import Undeclared
    from gpufence.limits import Part
    from webhook.rewrite.question import Question


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """
    What holds for a pod whatever its containers say.

    `parts` are the containers that ask for the GPU. `hard` are the problems for which `evict`
    refuses, `soft` the other ones. `card_taint` marks pods on cards that Kubernetes itself does not
    let tolerate those nodes' taint. Equal questions have the very same terms, so they are compared
    by identity.
    """

    question: Question
    wishes: PodOptions
    reach: Reach | None
    how: How
    fenced: bool
    hard: tuple[str, ...]
    soft: tuple[str, ...]
    parts: Mapping[str, Part]
    card_taint: bool = False
    why_not: str = ""

    @property
    def dialect(self) -> str | None:
        return None if self.reach is None else self.reach.limits.dialect


@lru_cache(maxsize=2048)
def read_terms(question: Question) -> Terms:
    """
    Work out the terms of a pod.
    """
    pod = question.pod()
    wishes = read_pod_options(pod.annotations, frozenset(item.name for item in pod.containers))
    words = read_namespace_options(dict(question.namespace))
    reach = read_reach(pod, wishes, words, question.choices)
    if isinstance(reach, Reach):
        fenced = reach.enforced and not reach.library_caps
        return Terms(
            question=question,
            wishes=wishes,
            reach=reach,
            how=_how(question.mode, wishes, fenced=fenced),
            fenced=fenced,
            hard=sentences.hard_problems(wishes, None),
            soft=sentences.about(wishes, words, reach, fenced=fenced),
            parts={part.container: part for part in reach.limits.parts},
            card_taint=reach.limits.dialect != annotation.SPEC.name
            and not any(names.NVIDIA_GPU in item.counts for item in gpu_requests(pod)),
        )
    return _without_limit(question, wishes, reach)


def _without_limit(question: Question, wishes: PodOptions, said: Undeclared | Unreadable) -> Terms:
    unreadable = said if isinstance(said, Unreadable) else None
    soft = () if unreadable is None else (unreadable.problem.sentence,)
    return Terms(
        question=question,
        wishes=wishes,
        reach=None,
        how=How.NOTHING,
        fenced=False,
        hard=sentences.hard_problems(wishes, unreadable),
        soft=(*soft, *sentences.notes(wishes)),
        parts={},
        why_not=sentences.why_not(said),
    )


def _how(mode: Mode, wishes: PodOptions, *, fenced: bool) -> How:
    """
    Decide what becomes of the settings.
    """
    if not wishes.inject:
        return How.NOTHING
    if mode is Mode.OBSERVE:
        return How.GROW if wishes.growth else How.PLAN
    return How.SET if fenced else How.NOTHING
