"""
PURE. What is said about a pod: warnings, refusals, and the one line that sums it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import Undeclared
from gpufence.mode import Mode
from gpufence.quantity import write_mebibytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpufence.annotations import NamespaceOptions, PodOptions
    from gpufence.dialects import Unreadable
    from gpufence.errors import Problem
    from gpufence.plan import Plan
    from webhook.frameworks.ask import TooSmall
    from webhook.rewrite.question import Question
    from webhook.rewrite.reach import Reach
    from webhook.rewrite.terms import Terms

_LONGEST_ANNOTATION = 8 * 1024

UNKNOWN_CARD = "no card's size is known yet: fractions stay as they are until the pod is bound"
SOME_UNKNOWN = "some nodes do not tell their cards: values may be too large there"
UNCLEAR = "on some nodes this holds: "


def hard_problems(wishes: PodOptions, said: Unreadable | None) -> tuple[str, ...]:
    """
    Return what `evict` refuses: words of ours that cannot be read, and what can never run.

    A unit or card that nobody knows is not the pod's fault, and refuses nothing.
    """
    problems = list(wishes.unreadable)
    if said is not None and (said.never_runs or said.problem.key.startswith(names.PREFIX)):
        problems.append(said.problem)
    return tuple(dict.fromkeys(_sentences(problems)))


def too_small(container: str, found: TooSmall) -> str:
    """
    Say that a limit leaves no room for any framework, and which limit would.
    """
    return (
        f"{container}: {write_mebibytes(found.limit_bytes)} of GPU memory is too little: "
        f"{write_mebibytes(found.reserve_bytes)} go to CUDA itself; "
        f"ask for at least {write_mebibytes(found.sufficient_bytes)}"
    )


def notes(wishes: PodOptions) -> tuple[str, ...]:
    """
    Name the keys that do nothing.
    """
    return _sentences(wishes.notes)


def about(
    wishes: PodOptions, words: NamespaceOptions, reach: Reach, *, fenced: bool
) -> tuple[str, ...]:
    """
    Return what the creator of the pod should know, besides each container's own remarks.
    """
    said = [*_sentences(reach.limits.notes), *_sentences(wishes.notes)]
    said += (f"{UNCLEAR}{text}" for text in _sentences(reach.unclear))
    said += (f"namespace {text}" for text in _sentences(words.unreadable))
    unknown = sum(1 for choice, _ in reach.found if choice.memory_bytes is None)
    if fenced and unknown:
        said.append(UNKNOWN_CARD if unknown == len(reach.found) else SOME_UNKNOWN)
    return tuple(said)


def summary(terms: Terms, reach: Reach, plan: Plan) -> str:
    """
    Sum the decision up in one line.
    """
    limit = "unknown" if plan.limit_bytes is None else write_mebibytes(plan.limit_bytes)
    head = f"{plan.dialect}: limit {limit} on each card ({reach.limits.basis})"
    return f"{head}; {_course(terms, reach, plan)}{_where(terms.question)}"


def why_not(said: Undeclared | Unreadable) -> str:
    """
    Sum up why a pod has no limit.
    """
    if isinstance(said, Undeclared):
        return f"not fenced: {said.reason}"
    return f"not fenced, its limit cannot be read: {said.problem.sentence}"


def card(question: Question) -> str:
    """
    Name the cards the values were computed for; empty where none is known.
    """
    if question.place is not None:
        return question.place.cards
    sizes = sorted({choice.memory_bytes for choice in question.choices if choice.memory_bytes})
    return ", ".join(map(write_mebibytes, sizes))


def joined(warnings: Iterable[str]) -> str:
    """
    Write warnings as an annotation: one on each line.
    """
    return "\n".join(warnings)[:_LONGEST_ANNOTATION]


def _course(terms: Terms, reach: Reach, plan: Plan) -> str:
    if not terms.wishes.inject:
        return "opted out of settings, measured and fenced all the same"
    if reach.library_caps:
        return "capped by its own library, so nothing is injected"
    if not terms.fenced:
        return f"no amount declared, so not fenced; {names.MEMORY} sets one"
    caps = ", ".join(
        f"{name} {write_mebibytes(item.cap_bytes)}"
        for name, item in plan.containers.items()
        if item.cap_bytes is not None
    )
    verb = "would be" if terms.question.mode is Mode.OBSERVE else "are"
    return f"frameworks {verb} told {caps or 'nothing yet'}"


def _where(question: Question) -> str:
    if question.place is not None:
        return f"; exact on node {question.place.node} ({question.place.cards})"
    kinds = len(question.choices)
    if kinds > 1:
        return f"; the smallest over {kinds} kinds of cards until it is bound"
    known = question.choices[0].memory_bytes
    return "" if known is None else f"; for a card of {write_mebibytes(known)} until it is bound"


def _sentences(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(problem.sentence for problem in problems)
