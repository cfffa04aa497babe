"""
PURE. The decision about one pod, at creation and again at binding: figures, settings, sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.plan import Plan, join_plan
from webhook.frameworks.ask import Ask, How
from webhook.frameworks.figures import Reckoning
from webhook.frameworks.injection import inject
from webhook.operations import SharedTexts
from webhook.rewrite import sentences

if TYPE_CHECKING:
    from webhook.frameworks.ask import Injection
    from webhook.rewrite.containers import Look
    from webhook.rewrite.terms import Terms


@dataclass(frozen=True, slots=True)
class Decision:
    """
    All that is to be said and done about a pod.

    `annotations` record it: the slots, and what explains them. `hard` are the problems for which
    `evict` refuses.
    """

    plan: Plan
    summary: str
    annotations: SharedTexts
    injections: tuple[Injection, ...]
    warnings: tuple[str, ...]
    hard: tuple[str, ...]


@lru_cache(maxsize=2048)
def decide(terms: Terms, looks: tuple[Look, ...], first_slot: int) -> Decision:
    """
    Tell every container that asks for the GPU, each with slots of its own, and say why.
    """
    reach = terms.reach
    injections: list[Injection] = []
    for look in looks:
        injections.append(inject(_ask(terms, look, first_slot)))
        first_slot = injections[-1].next_slot
    plan = Plan(
        mode=terms.question.mode,
        dialect=terms.dialect or "",
        limit_bytes=None if reach is None else reach.limit_bytes,
        containers={item.container: item.plan for item in injections},
        namespace=dict(terms.question.namespace),
    )
    small = (
        sentences.too_small(item.container, item.too_small) for item in injections if item.too_small
    )
    hard = (*terms.hard, *small)
    own = (text for item in injections for text in item.warnings)
    hooks = (f"{look.name}: {look.hook}" for look in looks if look.hook)
    warnings = tuple(dict.fromkeys((*hard, *terms.soft, *own, *hooks)))
    said = terms.why_not if reach is None else sentences.summary(terms, reach, plan)
    return Decision(
        plan=plan,
        summary=said,
        annotations=_record(terms, plan, injections, said, warnings),
        injections=tuple(injections),
        warnings=warnings,
        hard=hard,
    )


def _record(
    terms: Terms, plan: Plan, injections: list[Injection], said: str, warnings: tuple[str, ...]
) -> SharedTexts:
    """
    Write the annotations by which the decision can be read with kubectl.
    """
    place = terms.question.place
    record = SharedTexts(
        (f"{names.ENV_PREFIX}{slot}", text) for item in injections for slot, text in item.values
    )
    record[names.PLAN] = join_plan(plan, {item.container: item.text for item in injections})
    record[names.INJECTED] = _injected(terms)
    record[names.SUMMARY] = said
    if warnings:
        record[names.WARNINGS] = sentences.joined(warnings)
    if terms.reach is not None:
        card = sentences.card(terms.question)
        record |= {names.CARD: card} if card else {}
        record |= {names.NODE: place.node} if place is not None else {}
    return record


def _injected(terms: Terms) -> str:
    if not terms.wishes.inject:
        return names.INJECTED_OPTED_OUT
    return names.INJECTED_YES if terms.how in (How.GROW, How.SET) else names.INJECTED_NOTHING


def _ask(terms: Terms, look: Look, first_slot: int) -> Ask:
    wishes = terms.wishes
    reckoning = Reckoning(
        () if terms.reach is None else terms.reach.met(look.name),
        several_cards=terms.parts[look.name].cards > 1,
        processes=wishes.processes,
        headroom=wishes.headroom,
        reserve_override=terms.question.reserve_override,
    )
    return Ask(
        container=look.name,
        reckoning=reckoning,
        words=look.words,
        launch=look.launch,
        first_slot=first_slot,
        how=terms.how,
        fenced=terms.fenced,
        bound=terms.question.place is not None,
        args=wishes.args,
        hook=wishes.python_hook,
        env_from=look.env_from,
    )
