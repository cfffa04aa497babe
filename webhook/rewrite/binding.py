"""
PURE. The same decision once more, when the node is certain: values exact for its card.

The variables were set when the pod was created and cannot be added to now; what they read can
change until the first container starts. So only slots that the pod has are written.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpufence import names
from gpufence.candidates import candidate_cards, wanted_resources
from gpufence.devices import Reading, with_parts
from gpufence.errors import GpufenceError
from gpufence.mode import Mode
from gpufence.plan import FRACTIONS, read_plan
from gpufence.pods import read_pod
from gpufence.shape import as_object, as_text
from webhook.driver_limits import held_at_binding
from webhook.frameworks.figures import Injecting
from webhook.rewrite.containers import Starts
from webhook.rewrite.decide import decide, try_amounts
from webhook.rewrite.inputs import at_binding, known_node, read_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.cards import Card
    from gpufence.nodes import GpuNode
    from gpufence.plan import Plan
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.policy import WebhookPolicy


_NOTHING: Final[Mapping[str, Object | str]] = MappingProxyType({})
_NO_CARDS: Final[Mapping[str, Card]] = MappingProxyType({})


def exact_values(
    pod: Object,
    node: GpuNode,
    policy: WebhookPolicy,
    claims: Mapping[str, Object | str] = _NOTHING,
    devices: Mapping[str, Card] = _NO_CARDS,
) -> dict[str, str]:
    """
    Return the annotations that make a pod's values exact for a node; none where anything is in
    doubt, since the careful values that the pod has are then the better ones.

    A node that offers nothing is believed where a pod asks for nothing that nodes list: its devices
    come by claims, or it was born a moment ago. On a node that does not state its cards no fraction
    of another card stays: those of the largest there is are right on none and too much on none,
    and the node is not named.

    A scheduler may hand over the card it has chosen in the Binding's own annotations: merge those
    into the pod's before. `claims` are its resource claims, which are allocated by now, and
    `devices` the cards that the node's DRA driver publishes. Raises `InvalidError` for what is no
    pod at all.
    """
    uid = as_text(as_object(pod.get("metadata"), "metadata").get("uid"), "metadata.uid")
    read = with_parts(read_pod(pod), claims, Reading(uid, bound=True, cards=devices))
    plan = _plan(read)
    if plan is None or plan.mode is Mode.OBSERVE or not (plan.dialect or read.claims):
        return {}
    unknown = policy.default._replace(memory_bytes=None)  # a default is nobody's card
    candidates = candidate_cards(read, [node], unknown, policy.measured)
    strange = any(card.memory_bytes is None for card in candidates)
    if not node.resources and (read.doubt or (wanted_resources(read) and not read.devices)):
        return {}
    if _has_strange_card(read) or (strange and not _told_a_share(plan)):
        return {}
    inputs = read_inputs(
        read,
        plan.mode,
        plan.namespace,
        candidates,
        policy.reserve_override,
        known_node(read, node)._replace(told=not strange),
        policy.largest_bytes,
    )
    inputs = at_binding(inputs)._replace(profile=plan.profile)
    # By claims that were made since, as for extended resources, a pod counts from now on.
    if inputs.dialect != plan.dialect and not (inputs.dialect and read.devices):
        return {}
    if read.annotations[names.INJECTED] != names.INJECTED_YES:  # there is nothing to write to
        inputs = inputs._replace(terms=inputs.terms._replace(injecting=Injecting.NOTHING))
    elif read.isolated and inputs.dialect == plan.dialect:
        terms = inputs.terms._replace(injecting=Injecting.SET, fenced=True)
        inputs = inputs._replace(terms=terms)
    if inputs.terms.injecting is Injecting.SET and not read.isolated:
        inputs = inputs._replace(driver=held_at_binding(pod, read, plan, node, policy))
    starts = Starts()
    exact = decide(try_amounts(inputs, pod, policy.hook_source, starts), pod, starts).annotations
    if names.WARNINGS in read.annotations:
        exact.setdefault(names.WARNINGS, "")  # a Binding can replace a key but not remove it
    return {key: text for key, text in exact.items() if _belongs(key, read)}


def _told_a_share(plan: Plan) -> bool:
    """Return whether a pod was told a share of some card, or its user's own was left to it."""
    told = [each for item in plan.containers.values() for each in item.settings if each.slot]
    return any(
        each.card_bytes is not None or (each.user and each.form in FRACTIONS) for each in told
    )


def _plan(pod: Pod) -> Plan | None:
    """Return the plan of a pod that the webhook has seen."""
    if names.INJECTED not in pod.annotations:
        return None
    try:
        return read_plan(pod.annotations.get(names.PLAN, ""))
    except GpufenceError:
        return None


def _has_strange_card(pod: Pod) -> bool:
    """
    Return whether some of the cards that claims give a part of are known and some are not: what
    fits the first may be too much of the others.
    """
    known = [each.card is not None for each in pod.devices if not each.amount.share]
    return any(known) and not all(known)


def _belongs(key: str, pod: Pod) -> bool:
    """
    Return whether a key is to be written at binding: of the slots only those that the pod has.
    """
    if key.startswith(names.ENV_PREFIX):
        return key in pod.annotations
    return key != names.INJECTED
