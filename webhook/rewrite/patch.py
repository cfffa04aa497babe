"""
PURE. The operations that change a pod, each applied to the object itself at the moment it is made:
variables, arguments, scheduler and tolerations.

An operation that does not apply makes the API server answer 500 to the pod's creator, even where
the webhook may fail. So none is ever made but through here, and an operation that could not apply
raises in our own process instead. Only what changes is named: fields we have never heard of stay
out of the patch, and so out of danger.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from gpufence import names
from gpufence.dialects import annotation
from gpufence.nodes import REQUIRED
from gpufence.shape import escape_pointer, objects, texts
from webhook.driver_limits import REQUIREMENT, entry_of, lacks
from webhook.frameworks.table import slot_name
from webhook.policy import CARD_TAINT
from webhook.rewrite.containers import SETTABLE, slot_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpufence.pods import Pod
    from gpufence.shape import Object
    from webhook.engines.recognise import Edit
    from webhook.frameworks.table import EnvEntry
    from webhook.policy import Toleration, WebhookPolicy
    from webhook.rewrite.containers import GpuContainer, Path
    from webhook.rewrite.injection import Injection

_NOT_ASKED = (None, "0", 0)
_UNCHOSEN = (None, "", names.DEFAULT_SCHEDULER)
_POLICY = "terminationMessagePolicy"
_UNSAID = {
    _POLICY: (None, "", "File"),
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
        wanted = {**injection.entries, **injection.literals}
        at = _without_doubles(patch, path, container.positions, wanted, gone)
        for env, text in injection.restored.items():
            if text is not None:
                _restore(patch, path, at[env], text)
        for env, entry in injection.entries.items():
            if env in at:
                _point(patch, (*path, at[env]), entry)
        for env, entry in injection.literals.items():
            if env in at and patch.at((*path, at[env])) != entry:
                patch.replace(path, at[env], entry)
    fresh = [entry for env, entry in injection.entries.items() if env not in at]
    fresh += [entry for env, entry in injection.literals.items() if env not in at]
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
        patch.update(container.path, {_POLICY: "FallbackToLogsOnError"})


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
    by_itself = any(item.gpu.get(names.NVIDIA_GPU) not in _NOT_ASKED for item in pod.containers)
    if dialect != annotation.SPEC.name and not by_itself:
        wanted = (CARD_TAINT, *wanted)
    present = objects(spec.get("tolerations"), "spec.tolerations")
    missing = [item for item in wanted if not any(_covers(own, item) for own in present)]
    patch.extend(("spec", "tolerations"), missing)


def require_label(patch: Patch) -> None:
    """Let a pod's node have the label of those whose driver can hold it, in each of its terms."""
    path: Path = ("spec",)
    missing: dict[str, Any] = {"nodeSelectorTerms": [{"matchExpressions": [dict(REQUIREMENT)]}]}
    missing = {"affinity": {"nodeAffinity": {REQUIRED: missing}}}
    for key in ("affinity", "nodeAffinity", REQUIRED):
        if patch.at(path).get(key) is None:
            patch.update(path, missing)
            return
        path, missing = (*path, key), missing[key]
    terms = objects(patch.at(path).get("nodeSelectorTerms"), REQUIRED)
    for at, term in enumerate(terms):
        if lacks(term):
            place = (*path, "nodeSelectorTerms", at, "matchExpressions")
            patch.extend(place, [dict(REQUIREMENT)])


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


def _restore(patch: Patch, path: Path, place: int, text: str) -> None:
    """Give a user's own text back, to what read a slot or was there for the driver."""
    entry = patch.at((*path, place))
    if "valueFrom" in entry:
        patch.remove((*path, place), "valueFrom")
        patch.update((*path, place), {"value": text})
    else:
        patch.replace(path, place, entry_of(str(entry["name"]), text))


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
        for position in (at if env in gone else at[:-1] if env in wanted else ())
    )
    if removed:
        patch.drop_items(path, removed)
    return {
        env: at[-1] - bisect_left(removed, at[-1])
        for env, at in positions.items()
        if env not in gone
    }


def _covers(own: Object, wanted: Toleration) -> bool:
    """Return whether a toleration of the pod's own bears the taint already."""
    key, effect = own.get("key") or "", own.get("effect") or ""
    if effect not in ("", wanted.get("effect", "")):
        return False
    if own.get("operator") == "Exists":
        return key in ("", wanted["key"])
    return "value" in wanted and (key, own.get("value")) == (wanted["key"], wanted["value"])


Operation: TypeAlias = dict[str, object]

MOST_OPERATIONS = 512
"""A pod of ten GPU containers takes about 300."""
_TOO_MANY = MOST_OPERATIONS + 1  # so many of one change tell that its part is replaced as a whole

_SLOTS = [slot_name(env, number) for env in SETTABLE for number in range(4)]
_TOKENS = {
    key: escape_pointer(key)
    for key in (*names.WRITTEN_KEYS, *(f"{names.ENV_PREFIX}{slot}" for slot in _SLOTS), _POLICY)
}
"""How the keys that are written most stand in a pointer."""


@dataclass(slots=True)
class Patch:
    """
    The changes made so far, and the object as it will be when they are applied.

    The object handed in is changed, so no two parts of it may be one (YAML has aliases). What is
    put in goes into object and operations alike: it is not to be changed afterwards.
    """

    document: dict[str, Any]
    _changes: list[Operation] = field(default_factory=list)

    @property
    def operations(self) -> list[Operation]:
        """
        Return the operations that make the changes.

        Where those are many, whatever they change is replaced as a whole: an API server looks each
        path up from the root, and moves the rest of a list for each item.
        """
        if len(self._changes) <= MOST_OPERATIONS:
            return self._changes
        parts = dict.fromkeys(tuple(str(each["path"]).split("/")[1:3]) for each in self._changes)
        return [{"op": "add", "path": _pointer(part), "value": self.at(part)} for part in parts]

    def update(self, path: Path, entries: Mapping[str, object]) -> None:
        """Set members of an object, which is made if it is not there."""
        if not entries:
            return
        target = self.at(path)
        if not isinstance(target, dict):
            self._make(path, dict(entries), dict(entries))
            return
        prefix = f"{_pointer(path)}/"
        self._changes += [
            {
                "op": "replace" if key in target else "add",
                "path": prefix + (_TOKENS.get(key) or escape_pointer(key)),
                "value": value,
            }
            for key, value in islice(entries.items(), _TOO_MANY)
        ]
        target.update(entries)

    def extend(self, path: Path, items: Sequence[object]) -> None:
        """Append to a list, which is made if it is not there."""
        if not items:
            return
        target = self.at(path)
        if not isinstance(target, list):
            self._make(path, list(items), list(items))
            return
        end = f"{_pointer(path)}/-"
        self._changes += [{"op": "add", "path": end, "value": item} for item in items[:_TOO_MANY]]
        target += items

    def replace(self, path: Path, key: int, value: object) -> None:
        """Put another item in the place of one of a list, which must be there."""
        self.at(path)[key] = value
        self._changes.append({"op": "replace", "path": f"{_pointer(path)}/{key}", "value": value})

    def remove(self, path: Path, *keys: str) -> None:
        """Remove members of an object, which must be there."""
        members = self.at(path)
        for key in keys:
            del members[key]
        start = f"{_pointer(path)}/"
        self._changes += [
            {"op": "remove", "path": start + escape_pointer(key)} for key in keys[:_TOO_MANY]
        ]

    def drop_items(self, path: Path, positions: Sequence[int]) -> None:
        """Remove items of a list, which must be there: the positions rise."""
        gone = frozenset(positions)
        items = self.at(path)
        items[:] = [item for position, item in enumerate(items) if position not in gone]
        start = f"{_pointer(path)}/"
        self._changes += [
            {"op": "remove", "path": f"{start}{position}"}
            for position in islice(reversed(positions), _TOO_MANY)
        ]

    def _make(self, path: Path, value: object, copy: object) -> None:
        self.at(path[:-1])[path[-1]] = copy
        self._changes.append({"op": "add", "path": _pointer(path), "value": value})

    def at(self, path: Path) -> Any:  # noqa: ANN401 - whatever stands there
        """Return what will stand at a path, which is not to be changed; None where nothing will."""
        found: Any = self.document
        for key in path:
            if type(found) is dict:  # as nearly always, and often without the member
                found = found.get(key)
            else:
                found = found[key] if found and isinstance(key, int) else None
        return found


def _pointer(path: Path) -> str:
    return "/" + "/".join(map(str, path))
