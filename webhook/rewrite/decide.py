"""
PURE. The decision about one pod, at creation and again at binding: figures, settings, and the
sentences about it: warnings, refusals, and the one line that sums it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpufence import names
from gpufence.devices import MOST_CLAIMS, has_too_many
from gpufence.dialects import Undeclared, Unreadable
from gpufence.errors import Problem
from gpufence.mode import Mode
from gpufence.plan import Plan, join_plan
from gpufence.quantity import write_mebibytes
from webhook.driver_limits import said_of
from webhook.frameworks.figures import Injecting
from webhook.rewrite.containers import read_containers
from webhook.rewrite.injection import inject
from webhook.rewrite.inputs import PodLimits
from webhook.rewrite.neighbours import neighbour_words
from webhook.rewrite.python_hook import HookMount, HookObstacle, is_taken, plan_hook

if TYPE_CHECKING:
    from gpufence.plan import ContainerPlan
    from gpufence.shape import Object
    from webhook.frameworks.figures import TooSmall
    from webhook.rewrite.containers import GpuContainer, Starts
    from webhook.rewrite.injection import Injection
    from webhook.rewrite.inputs import PlanInputs
    from webhook.rewrite.python_hook import HookPlan


_LONGEST_ANNOTATION = 8 * 1024
_ITS_LIBRARY = "its library caps it by the amount in its resources"


class ContainerDecision(NamedTuple):
    """
    One container that asks for the GPU, what it is told, and what becomes of the start-up hook.
    """

    container: GpuContainer
    injection: Injection
    hook: HookPlan


class Trial(NamedTuple):
    """
    What each container is told under some amounts, and what is wrong with those.

    `hard` are the problems for which `evict` refuses; `unfit` where one is how a server is started,
    which is nobody's but the pod's. `soft` would be hard, were the amounts final.
    """

    inputs: PlanInputs
    containers: list[ContainerDecision]
    hard: list[str]
    soft: list[str]
    unfit: bool

    @property
    def fault(self) -> str:
        """Why a profile's amounts cannot be held to; empty where they can."""
        limits = self.inputs.limits
        capped = isinstance(limits, PodLimits) and limits.library_caps
        return self.hard[0] if self.hard else _ITS_LIBRARY if capped else ""


class PodDecision(NamedTuple):
    """
    What becomes of a pod, and what its creator reads about it.

    `annotations` record it: the slots, and what explains them.
    """

    plan: Plan
    summary: str
    annotations: dict[str, str]
    warnings: tuple[str, ...]


def try_amounts(inputs: PlanInputs, manifest: Object, hook_source: str, starts: Starts) -> Trial:
    """Work out what every container that asks for the GPU is told, each with slots of its own."""
    containers = _containers(inputs, manifest, hook_source, starts)
    hard, unfit = _hard_problems(inputs), False
    soft: list[str] = []
    for item in containers:
        limit = item.injection.too_small
        if limit is not None:
            said = _too_small(item.container.text.name, limit)
            (soft if inputs.may_get_more else hard).append(said)
        if item.injection.refusal:
            hard.append(item.injection.refusal)
            unfit = True
    return Trial(inputs, containers, hard, soft, unfit)


def decide(trial: Trial, manifest: Object, starts: Starts) -> PodDecision:
    """Make the plan of what was tried, the sentences about it and what records it."""
    inputs, containers = trial.inputs, trial.containers
    limits = inputs.limits
    plan = Plan(
        mode=inputs.mode,
        dialect=limits.first.dialect if isinstance(limits, PodLimits) else "",
        limit_bytes=limits.limit_bytes if isinstance(limits, PodLimits) else None,
        containers={item.container.text.name: item.injection.plan for item in containers},
        namespace=inputs.namespace_texts,
        profile=inputs.profile,
        request_bytes=limits.request_bytes if isinstance(limits, PodLimits) else None,
    )
    summary = _summary(inputs, plan)
    warnings = [*trial.hard, *trial.soft, *_notes(inputs)]
    for item in containers:
        warnings += item.injection.warnings
    for item in containers:
        if isinstance(item.hook, HookObstacle):
            warnings.append(f"{item.container.text.name}: {item.hook.reason}")
    if len(inputs.pod.containers) > 1:
        warnings += neighbour_words(inputs, manifest, starts)
    unique = tuple(dict.fromkeys(warnings))
    record = _record(inputs, plan, containers, summary, unique)
    return PodDecision(plan, summary, record, unique)


def _containers(
    inputs: PlanInputs, manifest: Object, hook_source: str, starts: Starts
) -> list[ContainerDecision]:
    if not isinstance(inputs.limits, PodLimits):
        return []
    wanted = frozenset([part.container for part in inputs.limits.first.parts])
    terms = inputs.terms
    hooked = terms.hook and terms.injecting is Injecting.SET
    taken = hooked and is_taken(manifest)
    limits = inputs.limits_of_all()
    decided = []
    for container, number in read_containers(manifest, wanted, inputs.options, starts):
        carrier = inputs.options.python_hook
        hook = plan_hook(container, hook_source, carrier, taken=taken) if hooked else None
        if terms.bursts:
            terms = terms._replace(gives_back=isinstance(hook, HookMount))
        injection = inject(container.text, tuple(limits[container.text.name]), terms, number)
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
        record[names.WARNINGS] = "\n".join(warnings)[:_LONGEST_ANNOTATION]
    if isinstance(inputs.limits, PodLimits):
        card = _card(inputs)
        if card:
            record[names.CARD] = card
        if inputs.node is not None and inputs.node.told:
            record[names.NODE] = inputs.node.name
    return record


UNKNOWN_CARD = "no card's size is known yet: fractions stay as they are until the pod is bound"
SOME_UNKNOWN = (
    "some nodes do not tell their cards: fractions are of the largest card there is until the pod "
    "is bound"
)
_MANY_CLAIMS = f"are more than the {MOST_CLAIMS} that gpufence reads of a pod"
UNASKED = (
    f"the pod asks for no GPU, and its namespace says {names.UNDECLARED_USE}: evict; if it uses "
    "one all the same it is evicted: request an amount of GPU memory"
)
UNCLEAR = "on some nodes this holds: "


def _hard_problems(inputs: PlanInputs) -> list[str]:
    """
    Return what `evict` refuses: whatever the pod's own words make unreadable.

    A unit or card that nobody knows is not the pod's fault, and refuses nothing.
    """
    problems = list(inputs.options.unreadable)
    if inputs.pod.claims and has_too_many(inputs.pod):
        claims = str(len(inputs.pod.claims))
        remedy = "put several requests into one claim"
        problems.append(Problem("spec.resourceClaims", claims, _MANY_CLAIMS, remedy))
    limits = inputs.limits
    if isinstance(limits, Unreadable) and limits.own_words:
        problems.append(limits.problem)
    return list(dict.fromkeys([problem.sentence for problem in problems]))


def _too_small(container: str, limit: TooSmall) -> str:
    """
    Return the sentence for a limit that leaves no room for any framework, and which limit would.
    """
    return (
        f"{container}: {write_mebibytes(limit.limit_bytes)} of GPU memory is too little: "
        f"{write_mebibytes(limit.reserve_bytes)} go to CUDA itself; "
        f"ask for at least {write_mebibytes(limit.sufficient_bytes)}"
    )


def _notes(inputs: PlanInputs) -> list[str]:
    """Return what the creator of the pod should know, besides each container's own remarks."""
    limits = inputs.limits
    if not isinstance(limits, PodLimits):
        unreadable = [limits.problem] if isinstance(limits, Unreadable) else []
        unasked = isinstance(limits, Undeclared) and inputs.namespace.evicts_undeclared
        texts = [] if not unasked or inputs.pod.doubt else [UNASKED]
        said = [problem.sentence for problem in (*unreadable, *inputs.options.notes)]
        return [*said, *texts]
    texts = [problem.sentence for problem in (*limits.first.notes, *inputs.options.notes)]
    texts += [f"{UNCLEAR}{problem.sentence}" for problem in limits.unclear]
    texts += [f"namespace {problem.sentence}" for problem in inputs.namespace.unreadable]
    held = inputs.driver is not None and inputs.driver.complete
    if (
        not held
        and inputs.terms.fenced
        and any(each.memory_bytes is None for each in inputs.candidates)
    ):
        texts.append(_unknown(inputs, limits))
    return texts


def _unknown(inputs: PlanInputs, limits: PodLimits) -> str:
    """Say what becomes of fractions where nothing tells a card's size."""
    if inputs.node is not None:
        largest = max(each.memory_bytes or 0 for each, _ in limits.by_card)
        return (
            f"node {inputs.node.name} does not state its cards: fractions are for one of "
            f"{write_mebibytes(largest)}, the largest there is; start gpufence's agent there, or "
            f"say with {names.LARGEST_CARD} which size the webhook assumes"
        )
    known = any(each.memory_bytes is not None for each, _ in limits.by_card)
    return SOME_UNKNOWN if known else UNKNOWN_CARD


def _summary(inputs: PlanInputs, plan: Plan) -> str:
    """Sum the decision up in one line."""
    limits = inputs.limits
    if isinstance(limits, Undeclared):
        if inputs.namespace.evicts_undeclared and not inputs.pod.doubt:
            return f"nothing is configured: {UNASKED}"
        return f"not fenced: {limits.reason}"
    if isinstance(limits, Unreadable):
        return f"nothing is configured, its limit cannot be read: {limits.problem.sentence}"
    limit = "unknown" if plan.limit_bytes is None else write_mebibytes(plan.limit_bytes)
    by = "" if inputs.profile is None else f", by profile {inputs.profile.name}"
    if plan.request_bytes is not None:
        limit = f"{limit}, {write_mebibytes(plan.request_bytes)} of it promised,"
    head = f"{plan.dialect}: limit {limit} on each card ({limits.first.basis}{by})"
    held = "" if inputs.driver is None else said_of(inputs.driver, inputs.mode)
    return f"{head}; {_course(inputs, limits, plan)}{held}{_where(inputs)}"


def _card(inputs: PlanInputs) -> str:
    """Name the cards the values were computed for; empty where none is known."""
    if inputs.node is not None:
        return inputs.node.cards
    sizes = sorted({each.memory_bytes for each in inputs.candidates if each.memory_bytes})
    return ", ".join(map(write_mebibytes, sizes))


def _course(inputs: PlanInputs, limits: PodLimits, plan: Plan) -> str:
    if not inputs.options.inject:
        return "opted out of settings, measured and fenced all the same"
    if limits.library_caps:
        return "capped by its own library, so nothing is injected"
    if not inputs.terms.fenced:
        return f"no amount declared, so not fenced; {names.MEMORY} sets one"
    if inputs.terms.injecting is Injecting.NOTHING:
        return "nothing was configured when it was created, only its agent enforces it"
    caps: dict[bool, list[str]] = {True: [], False: []}
    for name, item in plan.containers.items():
        if item.cap_bytes is not None and (item.kept or not item.runs):
            caps[item.kept].append(f"{name} {write_mebibytes(item.cap_bytes)}")
    told, offered = ", ".join(caps[True]), ", ".join(caps[False])
    observed = inputs.mode is Mode.OBSERVE
    known = [_runs(inputs, name, item) for name, item in plan.containers.items() if item.runs]
    if offered:
        verb = "would say" if observed else "say"
        held = inputs.driver is not None and inputs.driver.complete
        rest = "" if held else ", the agent fences the rest"
        known.insert(0, f"variables {verb} {offered} to what reads them{rest}")
    if told or not known:
        verb = "would be" if observed else "are"
        known.insert(0, f"frameworks {verb} configured with {told or 'nothing yet'}")
    return "; ".join(known)


def _runs(inputs: PlanInputs, name: str, item: ContainerPlan) -> str:
    """Say what a container runs, and what of all the settings that reads."""
    if not item.reads and inputs.driver is not None and name in inputs.driver.limits:
        return f"{name} runs {item.runs}, which reads none"
    if not item.reads:
        return f"{name} runs {item.runs}, fenced by the agent alone"
    return f"{name} runs {item.runs}, which reads {', '.join(item.reads)}"


def _where(inputs: PlanInputs) -> str:
    if inputs.node is not None and not inputs.node.told:
        return f"; for any card there is, since node {inputs.node.name} does not state its cards"
    if inputs.node is not None:
        return f"; exact on node {inputs.node.name} ({inputs.node.cards})"
    kinds = len(inputs.candidates)
    size = inputs.candidates[0].memory_bytes
    if inputs.mode is Mode.OBSERVE:  # which no binding makes exact
        if kinds > 1:
            return f"; planned for the smallest of {kinds} kinds of cards"
        return "" if size is None else f"; planned for a card of {write_mebibytes(size)}"
    if kinds > 1:
        return f"; the smallest over {kinds} kinds of cards until it is bound"
    return "" if size is None else f"; for a card of {write_mebibytes(size)} until it is bound"
