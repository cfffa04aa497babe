"""
PURE. The two variables by which the driver holds a container to its limit, and the label of
nodes whose driver can.

NVIDIA's toolkit reads them before a container starts (docs/frameworks.md). They are literals:
an empty one keeps it from starting, and none can be changed once the pod exists.
"""

from __future__ import annotations

import json
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from gpufence import names
from gpufence.candidates import usable_cards
from gpufence.errors import shown
from gpufence.fences import FIRST_DRIVER, is_too_old
from gpufence.mode import Mode
from gpufence.nodes import REQUIRED, too_many
from gpufence.plan import DRIVER_FORM, Done, Setting, driver_bytes
from gpufence.quantity import MIB, write_mebibytes
from gpufence.shape import as_object, objects
from webhook.frameworks.figures import LimitOnCard
from webhook.policy import DriverLimits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpufence.candidates import CandidateCard
    from gpufence.cards import Card
    from gpufence.limits import Limits
    from gpufence.nodes import GpuNode
    from gpufence.plan import Plan
    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.policy import WebhookPolicy

REQUIREMENT: Final = {"key": names.DRIVER_LIMITS, "operator": "In", "values": ["true"]}
"""What a pod requires of its node where nodes that can have the label."""

BY_LABEL: Final = (DriverLimits.LABELLED, DriverLimits.AUTO)
VARIABLES: Final = (names.DRIVER_REQUEST, names.DRIVER_LIMIT)
NOT_HELD: Final = "; not held by the driver: "
NO_NODE: Final = f"no GPU node that the pod may get has the label {names.DRIVER_LIMITS}"
NOT_PROVED: Final = f"a node that it may get, now or later, may lack {names.DRIVER_LIMITS}"
TOO_LONG: Final = f"its node affinity is too long for {names.DRIVER_LIMITS} to be required, too"
MIG: Final = "it may get a MIG instance, which the driver holds to no limit"
OLD: Final = f"a node that it may get has a driver before {FIRST_DRIVER}"
_SOURCE: Final = '{"valueFrom":'


class Held(NamedTuple):
    """
    To how many bytes of each card, whole MiB, the driver is to hold containers; `why_not` is
    why it does not hold one that has a limit, empty where there is none such. A pod that
    `requires_label` gets only nodes that have it.
    """

    limits: Mapping[str, int] = MappingProxyType({})
    why_not: str = ""
    requires_label: bool = False

    @property
    def complete(self) -> bool:
        return bool(self.limits) and not self.why_not


def has_label(node: GpuNode) -> bool:
    return node.labels.get(names.DRIVER_LIMITS) == "true"


def obstacle(node: GpuNode, cards: Iterable[Card]) -> str:
    """Return why a node's driver holds no container, as far as that is known."""
    if any(card.mig for card in cards):
        return MIG
    return OLD if is_too_old(node.driver) else ""


def requiring_label(pod: Pod) -> Pod | str:
    """
    Return a pod that requires the label of its node, or why it cannot; one that names its node
    requires nothing more.
    """
    if pod.node_name or pod.node_selector.get(names.DRIVER_LIMITS) == "true":
        return pod
    required = as_object(pod.affinity.get(REQUIRED), REQUIRED)
    terms = objects(required.get("nodeSelectorTerms"), REQUIRED)
    if too_many(terms):
        return TOO_LONG
    narrowed = [
        {**term, "matchExpressions": [*_expressions(term), REQUIREMENT]} if lacks(term) else term
        for term in terms
    ]
    if pod.affinity.get(REQUIRED) is None:
        narrowed = [{"matchExpressions": [REQUIREMENT]}]
    return pod._replace(
        affinity={**pod.affinity, REQUIRED: {**required, "nodeSelectorTerms": narrowed}}
    )


def unlabelled(pod: Pod, nodes: Sequence[GpuNode], *, grows: bool) -> str:
    """
    Return why a pod that is kept to no node may get one whose driver cannot hold it; `nodes` are
    those that it may get now, to which others come where the fleet `grows`.
    """
    if not any(map(has_label, nodes)):
        return NO_NODE
    comes = grows and requiring_label(pod) != pod
    return "" if all(map(has_label, nodes)) and not comes else NOT_PROVED


def lacks(term: Object) -> bool:
    """
    Return whether a term is to require the label, too; one without any requirement matches no
    node, and would match some with one.
    """
    by_label = _expressions(term)
    return bool(by_label or term.get("matchFields")) and REQUIREMENT not in by_label


def _expressions(term: Object) -> list[Object]:
    return objects(term.get("matchExpressions"), "matchExpressions")


def held_at_binding(
    pod: Object, read: Pod, plan: Plan, node: GpuNode, policy: WebhookPolicy
) -> Held | None:
    """
    Return to what the driver holds the containers of a pod that is being bound, by their
    variables; nothing where the node's cannot. Why it holds no other is in the summary.
    """
    why_not = read.annotations.get(names.SUMMARY, "").partition(NOT_HELD)[2].partition(";")[0]
    planned = {name: driver_bytes(item) for name, item in plan.containers.items()}
    held = {name: limit for name, limit in planned.items() if limit is not None}
    lacking = policy.driver_limits in BY_LABEL and not has_label(node)
    if lacking or not held or obstacle(node, usable_cards(read, node)):
        return Held(why_not=why_not) if why_not else None
    found = _limits_in(as_object(pod.get("spec"), "spec"))
    same = {name: limit for name, limit in held.items() if found.get(name) == str(limit // MIB)}
    return Held(same, why_not)


def _limits_in(spec: Object) -> dict[str, object]:
    """Return the text of the variable with the limit in each container that has it."""
    return {
        str(item.get("name")): entry.get("value")
        for kind in ("initContainers", "containers")
        for item in objects(spec.get(kind), kind)
        for entry in objects(item.get("env"), "env")
        if entry.get("name") == names.DRIVER_LIMIT
    }


def said_of(held: Held, mode: Mode) -> str:
    """Say what the driver is asked to hold, and why not the rest."""
    verb = "would be" if mode is Mode.OBSERVE else "is"
    each = [f"{name} to {write_mebibytes(limit)}" for name, limit in held.limits.items()]
    asked = f"; the driver {verb} asked to hold {', '.join(each)}" if each else ""
    return f"{asked}{NOT_HELD}{held.why_not}" if held.why_not else asked


def seen_by_held(
    by_card: Iterable[tuple[CandidateCard, Limits]], held: Held
) -> dict[str, list[LimitOnCard]]:
    """
    Return the limits of containers that the driver holds as their programs see them: the limit
    looks like the card. What many cards have in common is read once.
    """
    different = {
        (id(limits), card.compute_capability, card.reserve_bytes): limits
        for card, limits in by_card
    }
    found: dict[str, dict[LimitOnCard, None]] = {}
    for (_, capability, reserve), limits in different.items():
        for name, part, cards, request in limits.parts:
            limit = held.limits.get(name)
            if limit is not None:
                least = limit if part is None or part > limit else part
                promised = request if request is not None and request < least else None
                row = LimitOnCard(least, cards, limit, capability, reserve, driver=True)
                found.setdefault(name, {})[row._replace(request_bytes=promised)] = None
    return {name: list(rows) for name, rows in found.items()}


def written(limit_bytes: int) -> dict[str, str]:
    """Return the variables. No share is guaranteed: some drivers never get one back."""
    return dict(zip(VARIABLES, ("0", str(limit_bytes // MIB)), strict=True))


class Holding(NamedTuple):
    """What lets the driver hold one container: plan, variables, and what to say of them."""

    settings: tuple[Setting, ...]
    entries: Mapping[str, dict[str, object]]
    warnings: tuple[str, ...]


def holding(limit_bytes: int, users: Mapping[str, str | None], *, really: bool) -> Holding:
    """Return what is written, or only planned, in place of what `users` wrote."""
    settings, warnings = [], []
    texts = written(limit_bytes)
    for env, text in texts.items():
        user = users[env]
        done = _done(user, text) if really else Done.PLANNED
        if done is Done.LOWERED:
            what = f"{env} {shown(user or '')}"
            warnings.append(f"{what} is not the container's to say; what counts is {text}")
        amount = limit_bytes if env == names.DRIVER_LIMIT else None
        settings.append(Setting(env, "", DRIVER_FORM, done, user, amount))
    entries = {env: entry_of(env, text) for env, text in texts.items() if really}
    return Holding(tuple(settings), entries, tuple(warnings))


def _done(user: str | None, text: str) -> Done:
    if user is None:
        return Done.SET
    return Done.KEPT if user == text else Done.LOWERED


def is_written(entry: Object, limit: Setting | None) -> bool:
    """Return whether a variable is as an earlier pass has written it, by its plan."""
    if limit is None or limit.form != DRIVER_FORM or not limit.limit_bytes:
        return False
    text = written(limit.limit_bytes).get(str(entry.get("name")))
    return entry.get("value") == text and not entry.get("valueFrom")


def user_text(entry: Object) -> str:
    """Return a user's text of a variable, or where that comes from, as JSON."""
    source = entry.get("valueFrom")
    if source:
        return json.dumps({"valueFrom": source}, separators=(",", ":"))
    return str(entry.get("value") or "")


def entry_of(env: str, text: str) -> dict[str, object]:
    """Return the variable of whose words `user_text` has made a text."""
    if text.startswith(_SOURCE):
        with suppress(ValueError, RecursionError):
            source = json.loads(text)["valueFrom"]
            if _is_source(source):
                return {"name": env, "valueFrom": source}
    return {"name": env, "value": text}


def _is_source(source: object) -> bool:
    """Return whether something has the shape of Kubernetes: a plan may be forged."""
    kinds = source.values() if isinstance(source, dict) else [None]
    return all(
        isinstance(kind, dict) and all(isinstance(item, str | int) for item in kind.values())
        for kind in kinds
    )
