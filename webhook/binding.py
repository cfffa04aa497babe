"""
PURE. The same decision once more, when the node is certain: values exact for its card.

The variables were set when the pod was created and cannot be added to now; what they read can
change until the first container starts. So only slots that the pod has are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.candidates import choices
from gpufence.dialects import Undeclared
from gpufence.errors import GpufenceError
from gpufence.mode import Mode
from gpufence.plan import read_plan
from gpufence.pods import read_pod
from gpufence.wishes import read_wishes
from webhook.rewrite.case import Case
from webhook.rewrite.decide import decide
from webhook.rewrite.record import record

if TYPE_CHECKING:
    from gpufence.nodes import GpuNode
    from gpufence.plan import Plan
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.policy import Policy

_FIXED = frozenset({names.SITECUSTOMIZE, names.INJECTED})
"""What a binding has no business to change."""


def exact_values(pod: Object, node: GpuNode, policy: Policy) -> dict[str, str]:
    """
    Return the annotations that make a pod's values exact for a node; none where anything is in
    doubt, since the careful values that the pod has are then the better ones.

    A scheduler may hand over the card it has chosen in the Binding's own annotations: merge those
    into the pod's before. Raises `InvalidError` for what is no pod at all.
    """
    read = read_pod(pod)
    plan = _plan(read)
    if plan is None or plan.mode is Mode.OBSERVE or not plan.dialect:
        return {}
    found = choices(read, [node], policy.default)
    if any(choice.memory_bytes is None for choice in found):
        return {}
    case = Case(
        manifest=pod,
        pod=read,
        wishes=read_wishes(read.annotations, frozenset(item.name for item in read.containers)),
        namespace=plan.namespace,
        mode=plan.mode,
        policy=policy,
        choices=found,
        node=node,
    )
    decision = decide(case)
    if isinstance(decision, Undeclared) or decision.dialect != plan.dialect:
        return {}
    said = record(case, decision)
    if names.WARNINGS in read.annotations:
        said.setdefault(names.WARNINGS, "")  # a Binding can replace a key but not remove it
    return {key: text for key, text in said.items() if _belongs(key, read)}


def _plan(pod: Pod) -> Plan | None:
    """
    Return the plan of a pod that the webhook has seen.
    """
    if names.INJECTED not in pod.annotations:
        return None
    try:
        return read_plan(pod.annotations.get(names.PLAN, ""))
    except GpufenceError:
        return None


def _belongs(key: str, pod: Pod) -> bool:
    """
    Tell whether a key is to be written at binding: of the slots only those that the pod has.
    """
    return key not in _FIXED and (not key.startswith(names.ENV_PREFIX) or key in pod.annotations)
