"""
PURE. From a pod to what becomes of it: the operations, or why there are none, or why not.

Each pass works everything out anew from the pod's own words and compares; nothing that stands on
the pod is believed because it looks like ours. So a second pass over its own result finds nothing
to do, and a forged plan comes to nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpufence.dialects import Undeclared
from gpufence.mode import Mode
from gpufence.pods import read_pod
from gpufence.shape import as_object
from webhook.operations import Patch
from webhook.rewrite import hook
from webhook.rewrite.decide import decide, undeclared
from webhook.rewrite.entry import enter, out_of_scope
from webhook.rewrite.environment import append_argument, set_environment
from webhook.rewrite.notes import MOST_BYTES, settle_annotations, size_of
from webhook.rewrite.outcome import Refusal, Rewrite, Unchanged
from webhook.rewrite.record import record
from webhook.rewrite.scheduling import schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufence.shape import Object
    from webhook.fleet import Fleet
    from webhook.policy import Policy
    from webhook.rewrite.decide import Decision, Told
    from webhook.rewrite.entry import Entry

__all__ = ["Refusal", "Rewrite", "Unchanged", "rewrite"]

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
    entry = enter(pod, read, mode, namespace, fleet, policy)
    decision = decide(entry.case)
    if isinstance(decision, Undeclared):
        decision = undeclared(entry.case, decision)
    if mode is Mode.EVICT and decision.hard:
        return Refusal(f"gpufence refuses this pod: {'; also '.join(decision.hard)}")
    decision = replace(decision, warnings=(*decision.warnings, *entry.standing))
    return _carry_out(entry, decision)


def _carry_out(entry: Entry, decision: Decision) -> Rewrite | Unchanged:
    case = entry.case
    patch = Patch(case.manifest)
    for told in decision.told:
        _change(patch, case.manifest, told)
    if decision.dialect is not None and case.mode is not Mode.OBSERVE:
        schedule(patch, case.pod, decision.dialect, case.policy)
    metadata = as_object(case.manifest.get("metadata"), "metadata")
    present = as_object(metadata.get("annotations"), "metadata.annotations")
    settle_annotations(patch, present, {**entry.words, **record(case, decision)})
    if not patch.operations:
        return Unchanged(_DONE, decision.warnings)
    if size_of(patch.look(("metadata", "annotations"))) > MOST_BYTES:
        return Unchanged(_NO_ROOM, (_NO_ROOM,))
    return Rewrite(
        operations=tuple(patch.operations),
        warnings=(*decision.warnings, *entry.passing),
        plan=decision.plan,
        summary=decision.summary,
    )


def _change(patch: Patch, manifest: Object, told: Told) -> None:
    """
    Change one container as far as it is told anything.
    """
    set_environment(patch, told.seen, told.injection)
    append_argument(patch, told.seen, told.injection.argument)
    if told.hook_obstacle == "":
        hook.mount(patch, manifest, told.seen)
