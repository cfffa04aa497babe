"""
PURE. The decision about one pod, at creation and again at binding: figures, settings, sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.plan import Plan, join_plan
from webhook.frameworks.figures import Injecting
from webhook.rewrite import sentences
from webhook.rewrite.containers import read_containers, with_free_slots
from webhook.rewrite.injection import inject
from webhook.rewrite.inputs import PodLimits
from webhook.rewrite.neighbours import neighbour_words
from webhook.rewrite.python_hook import HookObstacle, is_taken, plan_hook

if TYPE_CHECKING:
    from gpufence.shape import Object
    from webhook.rewrite.containers import GpuContainer, Starts
    from webhook.rewrite.injection import Injection
    from webhook.rewrite.inputs import PlanInputs
    from webhook.rewrite.python_hook import HookPlan


class ContainerDecision(NamedTuple):
    """
    One container that asks for the GPU, what it is told, and what becomes of the start-up hook.
    """

    container: GpuContainer
    injection: Injection
    hook: HookPlan


class PodDecision(NamedTuple):
    """
    What becomes of a pod, and what its creator reads about it.

    `annotations` record it: the slots, and what explains them. `hard` are the problems for which
    `evict` refuses; `unfit` where one is how a server is started, which is nobody's but the pod's.
    """

    plan: Plan
    summary: str
    annotations: dict[str, str]
    containers: list[ContainerDecision]
    warnings: tuple[str, ...]
    hard: tuple[str, ...]
    unfit: bool


def decide(inputs: PlanInputs, manifest: Object, hook_source: str, starts: Starts) -> PodDecision:
    """
    Decide what every container that asks for the GPU is told, each with slots of its own, and why.
    """
    containers = _containers(inputs, manifest, hook_source, starts)
    limits = inputs.limits
    plan = Plan(
        mode=inputs.mode,
        dialect=limits.first.dialect if isinstance(limits, PodLimits) else "",
        limit_bytes=limits.limit_bytes if isinstance(limits, PodLimits) else None,
        containers={item.container.text.name: item.injection.plan for item in containers},
        namespace=inputs.namespace_texts,
        profile=inputs.profile,
    )
    summary = sentences.summary(inputs, plan)
    hard = sentences.hard_problems(inputs)
    soft: list[str] = []
    for item in containers:
        limit = item.injection.too_small
        if limit is not None:
            said = sentences.too_small(item.container.text.name, limit)
            (soft if inputs.may_get_more else hard).append(said)
        if item.injection.refusal:
            hard.append(item.injection.refusal)
    warnings = [*hard, *soft, *sentences.notes(inputs)]
    for item in containers:
        warnings += item.injection.warnings
    for item in containers:
        if isinstance(item.hook, HookObstacle):
            warnings.append(f"{item.container.text.name}: {item.hook.reason}")
    if len(inputs.pod.containers) > 1:
        warnings += neighbour_words(inputs, manifest, starts)
    unique = tuple(dict.fromkeys(warnings))
    return PodDecision(
        plan=plan,
        summary=summary,
        annotations=_record(inputs, plan, containers, summary, unique),
        containers=containers,
        warnings=unique,
        hard=tuple(hard),
        unfit=any(item.injection.refusal for item in containers),
    )


def _containers(
    inputs: PlanInputs, manifest: Object, hook_source: str, starts: Starts
) -> list[ContainerDecision]:
    if not isinstance(inputs.limits, PodLimits):
        return []
    wanted = frozenset([part.container for part in inputs.limits.first.parts])
    containers, slot = with_free_slots(read_containers(manifest, wanted, inputs.options, starts))
    terms = inputs.terms
    hooked = terms.hook and terms.injecting is Injecting.SET
    taken = hooked and is_taken(manifest)
    limits = inputs.limits_of_all()
    decided = []
    for container in containers:
        injection = inject(container.text, tuple(limits[container.text.name]), terms, slot)
        slot = injection.next_slot
        carrier = inputs.options.python_hook
        hook = plan_hook(container, hook_source, carrier, taken=taken) if hooked else None
        decided.append(ContainerDecision(container, injection, hook))
    return decided


def _record(
    inputs: PlanInputs,
    plan: Plan,
    containers: list[ContainerDecision],
    summary: str,
    warnings: tuple[str, ...],
) -> dict[str, str]:
    """Write the annotations by which the decision can be read with kubectl."""
    record: dict[str, str] = {}
    for item in containers:
        record.update(item.injection.values)
    texts = {item.container.text.name: item.injection.text for item in containers}
    record[names.PLAN] = join_plan(plan, texts)
    record[names.INJECTED] = names.INJECTED_OPTED_OUT
    if inputs.options.inject:
        set_now = inputs.terms.injecting in (Injecting.GROW, Injecting.SET)
        record[names.INJECTED] = names.INJECTED_YES if set_now else names.INJECTED_NOTHING
    record[names.SUMMARY] = summary
    if warnings:
        record[names.WARNINGS] = sentences.joined(warnings)
    if isinstance(inputs.limits, PodLimits):
        card = sentences.card(inputs)
        if card:
            record[names.CARD] = card
        if inputs.node is not None and inputs.node.told:
            record[names.NODE] = inputs.node.name
    return record
