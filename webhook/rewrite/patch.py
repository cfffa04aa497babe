"""
PURE. The operations that change a pod's spec: variables, arguments, scheduler and tolerations.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from gpufence import names
from gpufence.dialects import annotation, gpu_requests
from gpufence.shape import objects, texts
from webhook.policy import CARD_TAINT
from webhook.rewrite.containers import SETTABLE, slot_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.engines.recognise import Edit
    from webhook.operations import Patch, Path
    from webhook.policy import Toleration, WebhookPolicy
    from webhook.rewrite.containers import GpuContainer
    from webhook.rewrite.injection import EnvEntry, Injection

_UNCHOSEN = (None, "", names.DEFAULT_SCHEDULER)
_UNSAID = {
    "terminationMessagePolicy": (None, "", "File"),
    "terminationMessagePath": (None, "", "/dev/termination-log"),
}
"""How the API server fills in what nobody has said."""


def change_container(patch: Patch, container: GpuContainer, injection: Injection) -> None:
    """
    Make every variable of the injection read its slot, and leave none of them twice in the list.

    Variables that an earlier pass set and this one does not get the user's own text back, or go.
    """
    path = (*container.path, "env")
    at: Mapping[str, int] = {}
    if container.positions:
        gone = {env for env, user in injection.restored.items() if user is None}
        at = _without_doubles(patch, path, container.positions, injection.entries, gone)
        for env, text in injection.restored.items():
            if text is not None:
                _restore(patch, (*path, at[env]), text)
        for env, entry in injection.entries.items():
            if env in at:
                _point(patch, (*path, at[env]), entry)
    fresh = [entry for env, entry in injection.entries.items() if env not in at]
    patch.extend(path, fresh)
    # From the back, so that places before stay where they are.
    for edit in sorted(injection.edits, key=_place_of, reverse=True):
        _edit(patch, container.path, edit)


def keep_last_lines(patch: Patch, container: GpuContainer) -> None:
    """
    Let the last lines of a container that fails be its message, unless it has said what shall be:
    frameworks that run out of memory say so there.
    """
    if all(container.manifest.get(key) in values for key, values in _UNSAID.items()):
        patch.update(container.path, {"terminationMessagePolicy": "FallbackToLogsOnError"})


def schedule(patch: Patch, policy: WebhookPolicy, pod: Pod, dialect: str) -> None:
    """
    Name the dialect's scheduler where the pod leaves it to the default, and tolerate what the
    operator says, and what GPU nodes are tainted with: Kubernetes itself lets only pods that
    request `nvidia.com/gpu` tolerate that.
    """
    if not dialect:
        return
    spec = patch.document["spec"]
    name = policy.scheduler_names.get(dialect)
    if name and spec.get("schedulerName") in _UNCHOSEN:
        patch.update(("spec",), {"schedulerName": name})
    wanted = policy.tolerations
    if dialect != annotation.SPEC.name and not _tolerates_by_itself(pod):
        wanted = (CARD_TAINT, *wanted)
    if wanted:
        present = objects(spec.get("tolerations"), "spec.tolerations")
        missing = [item for item in wanted if not any(_covers(own, item) for own in present)]
        patch.extend(("spec", "tolerations"), [_write(item) for item in missing])


def _place_of(edit: Edit) -> tuple[object, ...]:
    return edit.place or ()


def _edit(patch: Patch, container: Path, edit: Edit) -> None:
    """Append an argument, or put it into the place of the user's, of whose item the rest stays."""
    place = edit.place
    if place is None:
        patch.extend((*container, "args"), [edit.text])
        return
    path = (*container, place.field)
    before = texts(patch.at(container)[place.field], place.field)[place.item]
    patch.replace(path, place.item, f"{before[: place.start]}{edit.text}{before[place.end :]}")


def _point(patch: Patch, path: Path, wanted: EnvEntry) -> None:
    entry = patch.at(path)
    if slot_of(entry) == slot_of(wanted):
        return
    if "value" in entry:
        patch.remove(path, "value")
    patch.update(path, {"valueFrom": wanted["valueFrom"]})


def _restore(patch: Patch, path: Path, text: str) -> None:
    patch.remove(path, "valueFrom")
    patch.update(path, {"value": text})


def _without_doubles(
    patch: Patch,
    path: Path,
    positions: Mapping[str, list[int]],
    wanted: Collection[str],
    gone: Collection[str],
) -> dict[str, int]:
    """
    Remove what stands twice, of which the last counts, and what has to go; return who stands where.
    """
    removed = sorted(
        position
        for env, at in positions.items()
        if env in SETTABLE
        for position in (at if env in gone else at[:-1] if env in wanted else ())
    )
    if removed:
        patch.drop_items(path, removed)
    return {
        env: at[-1] - bisect_left(removed, at[-1])
        for env, at in positions.items()
        if env not in gone
    }


def _tolerates_by_itself(pod: Pod) -> bool:
    """Return whether Kubernetes lets a pod tolerate the taint of GPU nodes without being told."""
    named = any(names.NVIDIA_GPU in item.gpu for item in pod.containers)
    return named and any(names.NVIDIA_GPU in item.counts for item in gpu_requests(pod))


def _covers(own: Object, wanted: Toleration) -> bool:
    """Return whether a toleration of the pod's own bears the taint already."""
    key, effect = own.get("key") or "", own.get("effect") or ""
    if effect not in ("", wanted.effect):
        return False
    if own.get("operator") == "Exists":
        return key in ("", wanted.key)
    return bool(wanted.value) and key == wanted.key and own.get("value") == wanted.value


def _write(wanted: Toleration) -> dict[str, str]:
    toleration = {"key": wanted.key, "operator": "Equal" if wanted.value else "Exists"}
    if wanted.value:
        toleration["value"] = wanted.value
    if wanted.effect:
        toleration["effect"] = wanted.effect
    return toleration
