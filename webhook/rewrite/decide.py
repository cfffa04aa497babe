"""
PURE. The decision about one pod, at creation and again at binding: figures, settings, sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufence.dialects import Dialect, Undeclared, Unreadable
from gpufence.mode import Mode
from gpufence.plan import Plan, join_plan
from webhook.frameworks.ask import Ask, How
from webhook.frameworks.figures import Reckoning
from webhook.frameworks.injection import inject
from webhook.rewrite import hook, sentences
from webhook.rewrite.containers import first_free, see
from webhook.rewrite.reach import Reach, read_reach

if TYPE_CHECKING:
    from gpufence.limits import Part
    from webhook.frameworks.ask import Injection
    from webhook.rewrite.case import Case
    from webhook.rewrite.containers import Seen

YES = "yes"
OPTED_OUT = "opted-out"
NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Told:
    """
    One container, what it is told, and why its start-up hook is not mounted, where it is not.

    None stands for a hook that nobody asked for.
    """

    seen: Seen
    injection: Injection
    hook_obstacle: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """
    All that is to be said and done about a pod.

    `injected` is the word the annotation says; `hard` are the problems for which `evict` refuses.
    """

    plan: Plan
    text: str
    injected: str
    summary: str
    dialect: Dialect | None = None
    told: tuple[Told, ...] = ()
    warnings: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """
        Return the text in each slot.
        """
        return {slot: text for told in self.told for slot, text in told.injection.values}


def decide(case: Case) -> Decision | Undeclared:
    """
    Decide about a pod; Undeclared stands for one that says nothing about GPU memory.
    """
    reach = read_reach(case.pod, case.wishes, case.words, case.choices)
    if isinstance(reach, Undeclared):
        return reach
    if isinstance(reach, Unreadable):
        return _unreadable(case, reach)
    return _decided(case, reach)


def undeclared(case: Case, said: Undeclared) -> Decision:
    """
    Record that a pod was seen which says nothing anybody could act on.
    """
    return _without_limit(
        case, sentences.undeclared(said.reason), sentences.hard_problems(case.wishes, None)
    )


def _unreadable(case: Case, said: Unreadable) -> Decision:
    hard = sentences.hard_problems(case.wishes, said)
    return _without_limit(case, sentences.unreadable(said.problem), hard, (said.problem.sentence,))


def _without_limit(
    case: Case, summary: str, hard: tuple[str, ...], soft: tuple[str, ...] = ()
) -> Decision:
    plan = Plan(case.mode, "", None, namespace=case.namespace)
    notes = sentences.notes(case.wishes.notes)
    return Decision(
        plan=plan,
        text=join_plan(plan, {}),
        injected=NOTHING if case.wishes.inject else OPTED_OUT,
        summary=summary,
        warnings=tuple(dict.fromkeys((*hard, *soft, *notes))),
        hard=hard,
    )


@dataclass(frozen=True, slots=True)
class _Course:
    """
    What becomes of the settings, and whether anything enforces the limit.
    """

    how: How
    fenced: bool


def _decided(case: Case, reach: Reach) -> Decision:
    course = _course(case, reach)
    told = _told(case, reach, course)
    containers = {item.injection.container: item.injection for item in told}
    plan = Plan(
        mode=case.mode,
        dialect=reach.limits.dialect,
        limit_bytes=reach.limit_bytes,
        containers={name: item.plan for name, item in containers.items()},
        namespace=case.namespace,
    )
    small = tuple(
        sentences.too_small(name, item.too_small)
        for name, item in containers.items()
        if item.too_small is not None
    )
    hard = (*sentences.hard_problems(case.wishes, None), *small)
    soft = sentences.about(case, reach, fenced=course.fenced)
    own = (text for item in told for text in _remarks(item))
    return Decision(
        plan=plan,
        text=join_plan(plan, {name: item.text for name, item in containers.items()}),
        injected=_injected(case, course),
        summary=sentences.summary(case, reach, plan, fenced=course.fenced),
        dialect=reach.limits.dialect,
        told=told,
        warnings=tuple(dict.fromkeys((*hard, *soft, *own))),
        hard=hard,
    )


def _course(case: Case, reach: Reach) -> _Course:
    fenced = reach.enforced and not reach.library_caps
    if not case.wishes.inject:
        return _Course(How.NOTHING, fenced)
    if case.mode is Mode.OBSERVE:
        return _Course(How.GROW if case.wishes.growth else How.PLAN, fenced)
    return _Course(How.SET if fenced else How.NOTHING, fenced)


def _injected(case: Case, course: _Course) -> str:
    if not case.wishes.inject:
        return OPTED_OUT
    return YES if course.how in (How.GROW, How.SET) else NOTHING


def _told(case: Case, reach: Reach, course: _Course) -> tuple[Told, ...]:
    """
    Tell every container that asks for the GPU, each with slots of its own.
    """
    parts = {part.container: part for part in reach.limits.parts}
    seen = see(case.manifest, parts)
    free = first_free(seen)
    told = []
    for item in seen:
        injection = inject(_ask(case, reach, parts[item.name], item, course, free))
        free = injection.next_slot
        told.append(Told(item, injection, _hook_obstacle(case, item, course)))
    return tuple(told)


def _hook_obstacle(case: Case, seen: Seen, course: _Course) -> str | None:
    if not case.wishes.python_hook or course.how is not How.SET:
        return None
    return hook.obstacle(case.manifest, seen) if case.policy.hook_source else hook.NO_SOURCE


def _remarks(told: Told) -> tuple[str, ...]:
    name, warnings = told.injection.container, told.injection.warnings
    return (*warnings, f"{name}: {told.hook_obstacle}") if told.hook_obstacle else warnings


def _ask(case: Case, reach: Reach, part: Part, seen: Seen, course: _Course, free: int) -> Ask:
    wishes = case.wishes
    reckoning = Reckoning(
        reach.met(part.container),
        several_cards=part.cards > 1,
        processes=wishes.processes,
        headroom=wishes.headroom,
        reserve_override=case.policy.reserve_override,
    )
    return Ask(
        container=part.container,
        reckoning=reckoning,
        words=seen.words,
        launch=seen.launch(wishes.framework),
        first_slot=free,
        how=course.how,
        fenced=course.fenced,
        args=wishes.args,
        hook=wishes.python_hook,
        env_from=seen.env_from,
    )
