"""
PURE. From a pod to what becomes of it: the operations, or why there are none, or why not.

Each pass works everything out anew from the pod's own words and compares; nothing that stands on
the pod is believed because it looks like ours. So a second pass over its own result finds nothing
to do, and a forged plan comes to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpufence import names
from gpufence.mode import Mode
from gpufence.pods import read_pod
from webhook.operations import Patch
from webhook.rewrite import hook
from webhook.rewrite.decide import decide
from webhook.rewrite.entry import ask, concerns_us, enter, out_of_scope
from webhook.rewrite.environment import append_argument, set_environment
from webhook.rewrite.looking import look_at
from webhook.rewrite.notes import fits, settle_annotations
from webhook.rewrite.outcome import Refusal, Rewrite, Unchanged
from webhook.rewrite.scheduling import schedule
from webhook.rewrite.terms import read_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.policy import Policy
    from webhook.rewrite.containers import Seen
    from webhook.rewrite.decide import Decision

__all__ = ["Refusal", "Rewrite", "Unchanged", "rewrite"]

_NO_GPU = "it asks for no GPU memory"
_DONE = "everything is as it should be already"
_NO_ROOM = "its annotations leave no room for those of gpufence; shorten them to 200 KiB"


def rewrite(
    pod: Object, mode: Mode, namespace: Mapping[str, str], fleet: Fleet, policy: Policy
) -> Rewrite | Unchanged | Refusal:
    """
    Decide about a pod that is being created; `namespace` are the annotations of its namespace.

    Raises `InvalidError` for what is no pod at all.
    """
    read = read_pod(pod)
    why = out_of_scope(pod, read)
    if why:
        return Unchanged(why)
    entry = enter(read, namespace)
    terms = read_terms(ask(entry.pod, mode, namespace, fleet, policy))
    if terms.reach is None and not concerns_us(read):
        return Unchanged(_NO_GPU)
    seen, first_slot = look_at(pod, terms, hook_source=policy.hook_source)
    decision = decide(terms, tuple(item.look for item in seen), first_slot)
    if mode is Mode.EVICT and decision.hard:
        return Refusal(f"gpufence refuses this pod: {'; also '.join(decision.hard)}")
    patch = _changed(pod, seen, decision)
    if terms.dialect is not None and mode is not Mode.OBSERVE:
        schedule(patch, policy, terms.dialect, card_taint=terms.card_taint)
    record: Mapping[str, str] = decision.annotations
    if entry.words or terms.wishes.python_hook:
        record = {**entry.words, **record, **_hook_source(seen, policy)}
    settle_annotations(patch, read.annotations, record)
    warnings = (*decision.warnings, *entry.standing)
    if not patch.operations:
        return Unchanged(_DONE, warnings)
    if not fits(read.annotations, record):
        return Unchanged(_NO_ROOM, (_NO_ROOM,))
    return Rewrite(
        operations=tuple(patch.operations),
        warnings=(*warnings, *entry.passing),
        plan=decision.plan,
        summary=decision.summary,
    )


def _hook_source(seen: Sequence[Seen], policy: Policy) -> dict[str, str]:
    """
    Return the annotation that the hook is mounted from, where any container mounts it.
    """
    mounted = any(item.look.hook == "" for item in seen)
    return {names.SITECUSTOMIZE: policy.hook_source} if mounted else {}


def _changed(pod: Object, seen: Sequence[Seen], decision: Decision) -> Patch:
    """
    Change the containers as far as each is told anything.
    """
    patch = Patch(pod)
    for item, injection in zip(seen, decision.injections, strict=True):
        set_environment(patch, item, injection)
        if injection.argument:
            append_argument(patch, item, injection.argument)
        if item.look.hook == "":
            hook.mount(patch, item)
    return patch
